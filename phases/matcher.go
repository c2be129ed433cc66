package phases

import (
	"encoding/binary"
	"math/bits"
)

// A matcher finds which of many literals stand in a text, in one pass that
// skips most bytes (Wu and Manber's scheme with blocks of four bytes): the last
// four bytes of a window tell how far the window may move before any literal
// could begin in it. Two hundred literals cost about as much as one.
type matcher struct {
	shift    [1 << matchBits]uint8
	bucket   map[uint32][]int32 // literal numbers by the block that ends their first window
	literals []string
}

const (
	matchBits  = 15
	matchBlock = 4
	maxShift   = minLiteral - matchBlock + 1
)

func newMatcher(literals []string) *matcher {
	m := &matcher{literals: literals, bucket: make(map[uint32][]int32)}
	for i := range m.shift {
		m.shift[i] = maxShift
	}
	for n, lit := range literals {
		for end := matchBlock; end <= minLiteral; end++ {
			block := binary.LittleEndian.Uint32([]byte(lit[end-matchBlock : end]))
			slot := &m.shift[matchHash(block)]
			*slot = min(*slot, uint8(minLiteral-end))
			if end == minLiteral {
				m.bucket[block] = append(m.bucket[block], int32(n))
			}
		}
	}
	return m
}

func matchHash(block uint32) uint32 { return block * 0x9E3779B1 >> (32 - matchBits) }

// find appends the numbers of the literals that stand in text, each once, in
// the order of the list.
func (m *matcher) find(text []byte, found *hitSet) {
	for i := minLiteral - matchBlock; i+matchBlock <= len(text); {
		block := binary.LittleEndian.Uint32(text[i:])
		if s := m.shift[matchHash(block)]; s > 0 {
			i += int(s)
			continue
		}
		start := i + matchBlock - minLiteral
		for _, n := range m.bucket[block] {
			lit := m.literals[n]
			if len(text)-start >= len(lit) && string(text[start:start+len(lit)]) == lit {
				found.add(int(n))
			}
		}
		i++
	}
}

// A hitSet is a small set of literal numbers that iterates in order.
type hitSet struct {
	words []uint64
	any   bool
}

func newHitSet(n int) *hitSet { return &hitSet{words: make([]uint64, (n+63)/64)} }

func (h *hitSet) add(n int) {
	h.words[n>>6] |= 1 << (n & 63)
	h.any = true
}

func (h *hitSet) reset() {
	if h.any {
		clear(h.words)
		h.any = false
	}
}

// each calls f for every member in ascending order.
func (h *hitSet) each(f func(n int)) {
	if !h.any {
		return
	}
	for w, word := range h.words {
		for ; word != 0; word &= word - 1 {
			f(w<<6 + bits.TrailingZeros64(word))
		}
	}
}
