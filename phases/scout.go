package phases

import "bytes"

// Marks say what a piece may hold that needs a closer look. A mark that is
// absent is certain: most lines have none and need next to nothing.
type marks uint8

const (
	markStamp   marks = 1 << iota // the begin of SGLang's prefix, behind the first byte
	markPipe                      // perhaps who relayed it
	markEscape                    // colours and other escape sequences
	markPercent                   // perhaps a bar
	markLiteral                   // the literal of a rule, or a text that the tracker looks for

	markAll = markLiteral<<1 - 1
)

var stampMark = []byte("[20")

// A scout runs ahead through one chunk and remembers where the next of each
// thing stands that a line may hold. So a thing that is rare is searched for in
// long strides over many lines, not in each of them.
type scout struct {
	rules *RuleSet
	chunk []byte

	newline, redraw, escape, pipe, glue int // where the next one stands, once looked for

	ahead                        int // where the look ahead ends
	stamp, percent, wide, narrow int // where the next one stands before that, else ahead
	nearest                      int // of those of the line above
}

// lookAhead is how far, where the lines that somebody asks about stand close
// together. One that stands alone among many that nobody asks about costs itself.
const lookAhead = 4 << 10

// begin takes a new chunk.
func (s *scout) begin(chunk []byte) {
	s.chunk, s.ahead = chunk, 0
	s.newline, s.redraw, s.escape, s.pipe, s.glue = -1, -1, -1, -1, -1
}

// end is where the piece that begins at from ends: at \n, \r or with the chunk.
func (s *scout) end(from int) int {
	if s.newline < from {
		s.newline = byteAt(s.chunk, '\n', from)
	}
	return min(s.newline, s.nextRedraw(from))
}

// nextRedraw is where the next \r stands, else the end of the chunk.
func (s *scout) nextRedraw(from int) int {
	if s.redraw < from {
		s.redraw = byteAt(s.chunk, '\r', from)
	}
	return s.redraw
}

// nextEscape is where the next escape sequence stands, else the end of the chunk.
func (s *scout) nextEscape(from int) int {
	if s.escape < from {
		s.escape = byteAt(s.chunk, 0x1b, from)
	}
	return s.escape
}

// nextPipe is where the next | stands, else the end of the chunk.
func (s *scout) nextPipe(from int) int {
	if s.pipe < from {
		s.pipe = byteAt(s.chunk, '|', from)
	}
	return s.pipe
}

// nextStamp is where the next prefix of SGLang's may begin, else the end of the chunk.
func (s *scout) nextStamp(from int) int {
	if s.glue < from {
		s.glue = wordAt(s.chunk, stampMark, from)
	}
	return s.glue
}

// drawn is where the next line stands that is more than its text.
func (s *scout) drawn(from int) int { return min(s.nextRedraw(from), s.nextEscape(from)) }

// look says what the piece between two places of the chunk may hold. The places
// never go back.
func (s *scout) look(from, to int) (m marks) {
	if to > s.ahead {
		reach := to
		if from < s.ahead+lookAhead {
			reach = max(to, from+lookAhead)
		}
		s.ahead = min(len(s.chunk), reach)
		s.stamp, s.percent, s.wide, s.narrow, s.nearest = -1, -1, -1, -1, -1
	}
	if s.nearest >= to {
		return 0
	}
	text := s.chunk[:s.ahead]
	if s.stamp <= from {
		s.stamp = wordAt(text, stampMark, min(from+1, len(text)))
	}
	if s.percent < from {
		s.percent = byteAt(text, '%', from)
	}
	if s.wide < from {
		s.wide = s.rules.wide.first(text, from)
	}
	if s.narrow < from {
		s.narrow = s.rules.narrow.first(text, from)
	}
	literal := min(s.wide, s.narrow)
	pipe, escape := s.nextPipe(from), s.nextEscape(from)
	s.nearest = min(s.stamp, pipe, escape, s.percent, literal)
	for mark, at := range [...]int{s.stamp, pipe, escape, s.percent, literal} {
		if at < to {
			m |= 1 << mark
		}
	}
	return m
}

// lookAlone says what a text may hold that stands in no chunk.
func lookAlone(rules *RuleSet, text []byte) marks {
	alone := scout{rules: rules}
	alone.begin(text)
	return alone.look(0, len(text))
}

// byteAt is where c stands in text at or after from, else the length of text.
func byteAt(text []byte, c byte, from int) int {
	if k := bytes.IndexByte(text[from:], c); k >= 0 {
		return from + k
	}
	return len(text)
}

func wordAt(text, word []byte, from int) int {
	if k := bytes.Index(text[from:], word); k >= 0 {
		return from + k
	}
	return len(text)
}
