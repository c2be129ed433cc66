package phases

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// A matcher finds which of many literals stand in a text, in one pass that
// skips most bytes (Wu and Manber's scheme with blocks of four bytes): each
// literal is known by a window of it, and the last four bytes under the window
// tell how far it may move before any literal could stand there. Three hundred
// literals cost about as much as one.
type matcher struct {
	window   int                   // bytes; no literal is shorter
	shift    [1 << matchBits]uint8 // by the hash of a block
	first    [1 << matchBits]int16 // where shift is 0: the last literal whose window ends so, else -1
	literals []matchLiteral
}

// A matchLiteral is a literal, its number in the hit set, and its window: the
// eight bytes of it that are least like ordinary text.
type matchLiteral struct {
	text   string
	number int
	at     int    // where in text the window begins
	key    uint64 // the window's bytes, as many as there are
	next   int16  // the literal before it in its slot, else -1
}

const (
	matchBits  = 15
	matchBlock = 4
)

// newMatcher builds a matcher of literals that are at least window bytes long
// (4 to 8); numbers says what each is called.
func newMatcher(literals []string, numbers []int, window int) *matcher {
	m := &matcher{window: window}
	for i := range m.shift {
		m.shift[i] = uint8(window - matchBlock + 1)
		m.first[i] = -1
	}
	for n, lit := range literals {
		l := matchLiteral{text: lit, number: numbers[n], at: rarest(lit, window), next: -1}
		under := []byte(lit[l.at : l.at+window])
		l.key = windowKey(under)
		for end := matchBlock; end <= window; end++ {
			slot := matchHash(binary.LittleEndian.Uint32(under[end-matchBlock:]))
			m.shift[slot] = min(m.shift[slot], uint8(window-end))
			if end == window {
				l.next = m.first[slot]
				m.first[slot] = int16(n)
			}
		}
		m.literals = append(m.literals, l)
	}
	return m
}

// rarest finds the window of a literal that ordinary text is least likely to
// hold: fewest blanks and frequent letters.
func rarest(lit string, window int) (at int) {
	best := -1
	for i := 0; i+window <= len(lit); i++ {
		common := 0
		for _, c := range []byte(lit[i : i+window]) {
			if k := strings.IndexByte("zqjxkvbpgwyfmculdhrsnioate ", c); k >= 0 {
				common += k + 8
			}
		}
		if best < 0 || common < best {
			best, at = common, i
		}
	}
	return at
}

func matchHash(block uint32) uint32 {
	return block * 0x9E3779B1 >> (32 - matchBits) & (1<<matchBits - 1)
}

// windowKey packs up to eight bytes.
func windowKey(b []byte) (key uint64) {
	for i, c := range b {
		key |= uint64(c) << (8 * i)
	}
	return key
}

// find adds the numbers of the literals that stand in text.
func (m *matcher) find(text []byte, found *hitSet) {
	step := m.window - matchBlock
	for i := step; i+matchBlock <= len(text); {
		slot := matchHash(binary.LittleEndian.Uint32(text[i:]))
		if s := m.shift[slot]; s > 0 {
			i += int(s)
			continue
		}
		m.verify(text, i-step, slot, found)
		i++
	}
}

// verify compares the literals of a slot with the text at a window.
func (m *matcher) verify(text []byte, window int, slot uint32, found *hitSet) {
	key := windowKey(text[window : window+m.window])
	for n := m.first[slot]; n >= 0; n = m.literals[n].next {
		l := &m.literals[n]
		if l.key != key {
			continue
		}
		start := window - l.at
		if start >= 0 && start+len(l.text) <= len(text) && string(text[start:start+len(l.text)]) == l.text {
			found.add(l.number)
		}
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
