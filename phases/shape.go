package phases

import "encoding/binary"

// A shape is how a text of fixed length looks in which some places hold digits:
// times, mostly. It is compared eight bytes at once: every line begins with one.
type shape struct {
	length int
	words  []shapeWord
}

// A shapeWord is eight bytes of a shape; the last one overlaps the one before it.
type shapeWord struct {
	at     int
	digits uint64 // all bits of the places of digits
	others uint64 // the other bytes
}

// newShape takes a model of eight bytes or more in which 0 is any digit.
func newShape(model string) shape {
	s := shape{length: len(model)}
	for at := 0; at < len(model); at += 8 {
		w := shapeWord{at: min(at, len(model)-8)}
		for i, c := range []byte(model[w.at : w.at+8]) {
			if c == '0' {
				w.digits |= 0xff << (8 * i)
			} else {
				w.others |= uint64(c) << (8 * i)
			}
		}
		s.words = append(s.words, w)
	}
	return s
}

// begins tells whether b begins in this shape.
func (s *shape) begins(b []byte) bool {
	if len(b) < s.length {
		return false
	}
	for i := range s.words {
		w := &s.words[i]
		x := binary.LittleEndian.Uint64(b[w.at:])
		if x&^w.digits != w.others || !areDigits(x&w.digits|zeros&^w.digits) {
			return false
		}
	}
	return true
}

const (
	zeros = 0x3030303030303030
	sixes = 0x0606060606060606
	highs = 0xf0f0f0f0f0f0f0f0
)

// areDigits tells whether eight bytes are decimal digits: above '0' stand at
// most 9, so that 6 more do not reach the upper half of a byte.
func areDigits(x uint64) bool {
	x ^= zeros
	return (x|(x+sixes))&highs == 0
}
