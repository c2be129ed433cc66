package phases

import (
	"encoding/binary"
	"math/bits"
)

// A matcher finds which of many literals stand in a text, in one pass that
// skips most bytes (Wu and Manber's scheme with blocks of four bytes): the last
// four bytes of a window tell how far the window may move before any literal
// could begin in it. Three hundred literals cost about as much as one.
type matcher struct {
	window   int                   // length of the shortest literal
	shift    [1 << matchBits]uint8 // by the hash of a block
	first    [1 << matchBits]int16 // where shift is 0: the last literal whose first window ends so, else -1
	next     []int16               // the one before it, else -1
	numbers  []int                 // what each literal is called in the hit set
	literals []string
}

const (
	matchBits  = 14
	matchBlock = 4
)

// newMatcher builds a matcher of literals that are at least window bytes long;
// numbers says what each is called.
func newMatcher(literals []string, numbers []int, window int) *matcher {
	m := &matcher{window: window, literals: literals, numbers: numbers, next: make([]int16, len(literals))}
	for i := range m.shift {
		m.shift[i] = uint8(window - matchBlock + 1)
		m.first[i] = -1
	}
	for n, lit := range literals {
		for end := matchBlock; end <= window; end++ {
			slot := matchHash(binary.LittleEndian.Uint32([]byte(lit[end-matchBlock : end])))
			m.shift[slot] = min(m.shift[slot], uint8(window-end))
			if end == window {
				m.next[n] = m.first[slot]
				m.first[slot] = int16(n)
			}
		}
	}
	return m
}

func matchHash(block uint32) uint32 { return block * 0x9E3779B1 >> (32 - matchBits) }

// find adds the numbers of the literals that stand in text.
func (m *matcher) find(text []byte, found *hitSet) {
	for i := m.window - matchBlock; i+matchBlock <= len(text); {
		slot := matchHash(binary.LittleEndian.Uint32(text[i:])) & (1<<matchBits - 1)
		if s := m.shift[slot]; s > 0 {
			i += int(s)
			continue
		}
		start := text[i+matchBlock-m.window:]
		for n := m.first[slot]; n >= 0; n = m.next[n] {
			if lit := m.literals[n]; len(start) >= len(lit) && string(start[:len(lit)]) == lit {
				found.add(m.numbers[n])
			}
		}
		i++
	}
}

// A hitSet is a small set of rule numbers that iterates in order.
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
