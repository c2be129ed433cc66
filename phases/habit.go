package phases

import "bytes"

// maxHabit is the longest unknown prefix that is learned.
const maxHabit = 120

// A habit is a prefix that nobody here knows and that stands before every line:
// an indentation, a quotation mark, another program's own header. It is learned
// where it stands before SGLang's prefix on two such lines in a row, its digits
// apart, and from then on taken off the lines that carry no other. With Ray's own
// prefix at its end one line is enough, and before a traceback.
type habit struct {
	shape []byte
	seen  int
}

const habitual = 2 // lines that make a habit

func (b *habit) known() bool { return b.seen >= habitual }

// learn takes what stood before SGLang's prefix and tells whether that is a
// habit by now. Bars are none: they are glued to the lines that follow them.
func (b *habit) learn(head []byte) bool {
	if len(head) > maxHabit || bytes.IndexByte(head, '%') >= 0 {
		return false
	}
	if b.fits(head) && len(head) == len(b.shape) {
		b.seen = min(b.seen+1, habitual)
		return b.known()
	}
	if b.known() {
		return false
	}
	b.shape = append(b.shape[:0], head...)
	for i, c := range b.shape {
		if isDigit(c) {
			b.shape[i] = '0'
		}
	}
	b.seen = 1
	if endsInRay(head) {
		b.seen = habitual
	}
	return b.known()
}

// trust makes a habit of what was seen once: before the head of a traceback, of which
// the next lines are frames behind the same.
func (b *habit) trust(head []byte) {
	if b.fits(head) && len(head) == len(b.shape) {
		b.seen = habitual
	}
}

// indented learns from a traceback's frame, which stands two blanks from the margin,
// how far a text was moved, and tells it. Three blanks are torch's own.
func (b *habit) indented(msg []byte) int {
	blanks := len(msg) - len(bytes.TrimLeft(msg, " "))
	if blanks < 4 || blanks > maxHabit || !bytes.HasPrefix(msg[blanks:], bareFrame) || !bytes.Contains(msg, frameLine) {
		return 0
	}
	b.shape = append(b.shape[:0], msg[:blanks-2]...)
	b.seen = habitual
	return blanks - 2
}

// endsInRay tells whether Ray's prefix is the last of several.
func endsInRay(head []byte) bool {
	k := bytes.LastIndexByte(head, '(')
	return k > 0 && rayPrefix(head[k:], new(header)) == len(head)-k
}

// fits tells whether text begins with the prefix.
func (b *habit) fits(text []byte) bool {
	if len(b.shape) == 0 || len(text) < len(b.shape) {
		return false
	}
	for i, c := range b.shape {
		if d := text[i]; d != c && (c != '0' || !isDigit(d)) {
			return false
		}
	}
	return true
}

// length is that of the prefix where text begins with it, else 0.
func (b *habit) length(text []byte) int {
	if !b.known() || !b.fits(text) {
		return 0
	}
	return len(b.shape)
}
