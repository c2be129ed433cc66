package phases

import "encoding/binary"

// A shape is how a text of fixed length looks in which some places hold digits:
// times, mostly. It is compared eight bytes at once, without a branch between
// them: every line begins with one.
type shape struct {
	length int
	words  [3]shapeWord // the last of a short one repeats
}

// A shapeWord is eight bytes of a shape; it may overlap the one before it.
type shapeWord struct {
	at     int
	digits uint64 // all bits of the places of digits
	others uint64 // the other bytes
}

// newShape takes a model of 8 to 24 bytes in which 0 is any digit.
func newShape(model string) shape {
	s := shape{length: len(model)}
	for n := range s.words {
		w := shapeWord{at: min(8*n, len(model)-8)}
		for i, c := range []byte(model[w.at : w.at+8]) {
			if c == '0' {
				w.digits |= 0xff << (8 * i)
			} else {
				w.others |= uint64(c) << (8 * i)
			}
		}
		s.words[n] = w
	}
	return s
}

// begins tells whether b begins in this shape.
func (s *shape) begins(b []byte) bool {
	return len(b) >= s.length && s.words[0].misfit(b)|s.words[1].misfit(b)|s.words[2].misfit(b) == 0
}

// misfit is 0 where b has the shape in these eight bytes.
func (w *shapeWord) misfit(b []byte) uint64 {
	x := binary.LittleEndian.Uint64(b[w.at:])
	return x&^w.digits ^ w.others | nonDigits(x&w.digits|zeros&^w.digits)
}

const (
	zeros = 0x3030303030303030
	sixes = 0x0606060606060606
	highs = 0xf0f0f0f0f0f0f0f0
)

// nonDigits is 0 where eight bytes are decimal digits: above '0' stand at most 9,
// so that 6 more do not reach the upper half of a byte.
func nonDigits(x uint64) uint64 {
	x ^= zeros
	return (x | (x + sixes)) & highs
}
