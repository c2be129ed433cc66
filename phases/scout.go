package phases

import "bytes"

// Marks say what a piece may hold that needs a closer look. A mark that is
// absent is certain: most lines have none and need next to nothing.
type marks uint8

const (
	markStamp   marks = 1 << iota // the begin of SGLang's prefix, behind the first byte
	markNCCL                      // perhaps a GPU's number
	markPipe                      // perhaps who relayed it
	markEscape                    // colours and other escape sequences
	markPercent                   // perhaps a bar
	markLiteral                   // the literal of a rule, or one that the tracker looks for

	markAll = markLiteral<<1 - 1
)

var (
	stampMark = []byte("[20")
	ncclWord  = []byte("NCCL ")
)

// A scout runs ahead through one chunk and remembers where the next of each
// thing stands that a line may hold. So a thing that is rare is searched for in
// long strides over many lines, not in each of them.
type scout struct {
	rules *RuleSet
	chunk []byte

	newline, redraw                                 int // where the next one stands, once looked for
	stamp, nccl, pipe, escape, percent, long, plain int
	nearest                                         int // of those of the line above
}

// begin takes a new chunk.
func (s *scout) begin(chunk []byte) {
	*s = scout{
		rules: s.rules, chunk: chunk, newline: -1, redraw: -1,
		stamp: -1, nccl: -1, pipe: -1, escape: -1, percent: -1, long: -1, plain: -1, nearest: -1,
	}
}

// end is where the piece that begins at from ends: at \n, \r or with the chunk.
func (s *scout) end(from int) int {
	if s.newline < from {
		s.newline = s.byteAt('\n', from)
	}
	if s.redraw < from {
		s.redraw = s.byteAt('\r', from)
	}
	return min(s.newline, s.redraw)
}

// look says what the piece between two places of the chunk may hold. The places
// never go back.
func (s *scout) look(from, to int) (m marks) {
	if s.nearest >= to {
		return 0
	}
	if s.stamp <= from {
		s.stamp = s.wordAt(stampMark, min(from+1, len(s.chunk)))
	}
	if s.nccl < from {
		s.nccl = s.wordAt(ncclWord, from)
	}
	if s.pipe < from {
		s.pipe = s.byteAt('|', from)
	}
	if s.escape < from {
		s.escape = s.byteAt(0x1b, from)
	}
	if s.percent < from {
		s.percent = s.byteAt('%', from)
	}
	if s.long < from {
		s.long = s.rules.long.first(s.chunk, from)
	}
	if s.plain < from {
		s.plain = s.rules.plain.first(s.chunk, from)
	}
	literal := min(s.long, s.plain)
	s.nearest = min(s.stamp, s.nccl, s.pipe, s.escape, s.percent, literal)
	for mark, at := range [...]int{s.stamp, s.nccl, s.pipe, s.escape, s.percent, literal} {
		if at < to {
			m |= 1 << mark
		}
	}
	return m
}

func (s *scout) byteAt(c byte, from int) int {
	if k := bytes.IndexByte(s.chunk[from:], c); k >= 0 {
		return from + k
	}
	return len(s.chunk)
}

func (s *scout) wordAt(word []byte, from int) int {
	if k := bytes.Index(s.chunk[from:], word); k >= 0 {
		return from + k
	}
	return len(s.chunk)
}
