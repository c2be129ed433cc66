package phases

import (
	"encoding/binary"
	"math/bits"
)

// A matcher finds which of many literals stand in a text. It looks at samples
// only: a few bytes at every fourth place. Each literal is known by a window of
// it that is three bytes longer than a sample, so that one sample lies inside
// the window wherever that stands; a sample that is part of no window is part of
// no literal. One bit answers that for nearly all of them, and no answer waits
// for the one before it: three hundred literals cost about as much as one.
type matcher struct {
	width    int                          // bytes of a sample
	mask     uint64                       // of so many low bytes
	known    [1 << (knownBits - 6)]uint64 // a bit for each hash of a sample of some window
	heads    [1 << headBits]uint16        // by the upper bits of the hash: the last of those samples, 0 where there is none
	samples  []sample                     // from 1
	literals []literal
}

// A literal and its number in the hit set; a negative one is only looked for.
type literal struct {
	text   string
	number int
}

// A sample is one place inside the window of a literal.
type sample struct {
	key     uint64 // its bytes
	literal int16
	at      int16  // where in the literal
	next    uint16 // the sample before it under its head, else 0
}

const (
	stride    = 4
	knownBits = 17
	headBits  = 13
)

// newMatcher builds a matcher of literals that are at least window bytes long
// (4 to 11).
func newMatcher(literals []literal, window int) *matcher {
	width := window - stride + 1
	m := &matcher{width: width, mask: 1<<(8*width) - 1, literals: literals, samples: make([]sample, 1)}
	for n, l := range literals {
		at := rarest(l.text, window, width)
		for i := at; i < at+stride; i++ {
			key := m.key([]byte(l.text), i)
			hash := sampleHash(key)
			m.known[hash>>6] |= 1 << (hash & 63)
			head := &m.heads[hash>>(knownBits-headBits)]
			m.samples = append(m.samples, sample{key: key, literal: int16(n), at: int16(i), next: *head})
			*head = uint16(len(m.samples) - 1)
		}
	}
	return m
}

// rarest finds the window of a literal that ordinary text is least likely to
// hold: one whose samples are no pieces of words, or of the rarest letters.
func rarest(lit string, window, width int) (at int) {
	best := -1
	for i := 0; i+window <= len(lit); i++ {
		common := 0
		for k := i; k+width <= i+window; k++ {
			common += commonness(lit[k : k+width])
		}
		if best < 0 || common < best {
			best, at = common, i
		}
	}
	return at
}

// commonness guesses how often ordinary text holds a sample: very often where
// it is a piece of words.
func commonness(sample string) (common int) {
	letters := 0
	for _, c := range []byte(sample) {
		if often := letterRanks[c]; often > 0 {
			common += often
			letters++
		}
	}
	if letters == len(sample) {
		common += 200
	}
	return common
}

// letterRanks orders what words are written with by how often it is met, the
// rarest is 1.
var letterRanks = func() (ranks [256]int) {
	for i, c := range []byte("zqjxkvbpgwyfmculdhrsnioate ") {
		ranks[c] = i + 1
	}
	return ranks
}()

// key is the sample at i, which lies within the text.
func (m *matcher) key(text []byte, i int) (key uint64) {
	if i+8 <= len(text) {
		return binary.LittleEndian.Uint64(text[i:]) & m.mask
	}
	for k, c := range text[i : i+m.width] { // at the very end of a text
		key |= uint64(c) << (8 * k)
	}
	return key
}

func sampleHash(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> (64 - knownBits) }

func (m *matcher) knows(hash uint64) bool { return m.known[hash>>6]>>(hash&63)&1 != 0 }

// next is the first sample at or after from that may be part of a window, -1
// where there is none.
func (m *matcher) next(text []byte, from int) int {
	i, mask := from, m.mask
	for ; i+4*stride+4 <= len(text); i += 4 * stride {
		b := text[i : i+4*stride+4 : i+4*stride+4]
		switch {
		case m.knows(sampleHash(binary.LittleEndian.Uint64(b[0*stride:]) & mask)):
			return i
		case m.knows(sampleHash(binary.LittleEndian.Uint64(b[1*stride:]) & mask)):
			return i + 1*stride
		case m.knows(sampleHash(binary.LittleEndian.Uint64(b[2*stride:]) & mask)):
			return i + 2*stride
		case m.knows(sampleHash(binary.LittleEndian.Uint64(b[3*stride:]) & mask)):
			return i + 3*stride
		}
	}
	for ; i+m.width <= len(text); i += stride {
		if m.knows(sampleHash(m.key(text, i))) {
			return i
		}
	}
	return -1
}

// verify tells whether the sample at i is part of a literal; found learns which.
func (m *matcher) verify(text []byte, i int, found *hitSet) (any bool) {
	key := m.key(text, i)
	for n := m.heads[sampleHash(key)>>(knownBits-headBits)]; n != 0; n = m.samples[n].next {
		s := &m.samples[n]
		if s.key != key {
			continue
		}
		l := &m.literals[s.literal]
		start := i - int(s.at)
		if start >= 0 && start+len(l.text) <= len(text) && string(text[start:start+len(l.text)]) == l.text {
			any = true
			found.add(l.number)
		}
	}
	return any
}

// find adds the numbers of the literals that stand in text.
func (m *matcher) find(text []byte, found *hitSet) {
	for i := m.next(text, 0); i >= 0; i = m.next(text, i+stride) {
		m.verify(text, i, found)
	}
}

// first is where a literal stands in text at or after from: some place inside
// it; the length of text where there is none.
func (m *matcher) first(text []byte, from int) int {
	for i := m.next(text, from); i >= 0; i = m.next(text, i+stride) {
		if m.verify(text, i, nil) {
			return i
		}
	}
	return len(text)
}

// A hitSet is a small set of rule numbers that iterates in order. Its zero value
// is empty.
type hitSet struct{ words []uint64 }

// add ignores negative numbers: what is looked for, yet no rule's. A nil set
// takes nothing.
func (h *hitSet) add(n int) {
	if h == nil || n < 0 {
		return
	}
	for len(h.words) <= n>>6 {
		h.words = append(h.words, 0)
	}
	h.words[n>>6] |= 1 << (n & 63)
}

func (h *hitSet) remove(n int) {
	if n>>6 < len(h.words) {
		h.words[n>>6] &^= 1 << (n & 63)
	}
}

func (h *hitSet) has(n int) bool { return n>>6 < len(h.words) && h.words[n>>6]>>(n&63)&1 != 0 }

func (h *hitSet) reset() { h.words = h.words[:0] }

// each calls f for every member in ascending order.
func (h *hitSet) each(f func(n int)) {
	for w, word := range h.words {
		for ; word != 0; word &= word - 1 {
			f(w<<6 + bits.TrailingZeros64(word))
		}
	}
}
