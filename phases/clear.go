package phases

import "bytes"

// A clear text is a chunk as its lines read: without colours, and out of their JSON
// envelopes. A survey looks at that; the tracker gets what was printed.
type clearText struct {
	opener prefixer // its scratch memory
	text   []byte
	ends   []int // of the lines of the chunk
}

// unseen stands in a clear text where something was printed that is no line of its
// own: of an empty line in an envelope, of the ends of lines inside one.
const unseen = 0

// isWrapped tells whether a chunk reads otherwise than it was printed. Envelopes are
// those of a collector: every line is in one.
func (s *scout) isWrapped() bool {
	return len(s.chunk) > 0 && s.chunk[0] == '{' || s.nextEscape(0) < len(s.chunk)
}

// of takes a chunk.
func (c *clearText) of(chunk []byte) (text []byte) {
	c.text, c.ends = c.text[:0], c.ends[:0]
	for from := 0; from < len(chunk); {
		end := byteAt(chunk, '\n', from)
		c.line(chunk[from:end])
		if end < len(chunk) {
			c.text = append(c.text, '\n')
			c.ends = append(c.ends, end)
		}
		from = end + 1
	}
	return c.text
}

// line adds a line, each piece that was drawn over another by itself.
func (c *clearText) line(line []byte) {
	for {
		piece, rest, more := bytes.Cut(line, []byte{'\r'})
		c.piece(piece)
		if !more {
			return
		}
		c.text = append(c.text, '\r')
		line = rest
	}
}

func (c *clearText) piece(piece []byte) {
	if len(piece) == 0 || len(piece) > maxPiece {
		c.text = append(c.text, piece...)
		return
	}
	from := len(c.text)
	c.text = append(c.text, c.opener.unwrap(piece)...)
	if len(c.text) == from {
		c.text = append(c.text, unseen)
	}
	hide(c.text[from:], '\n')
	hide(c.text[from:], '\r')
}

// hide takes the ends of lines out of the text of one.
func hide(text []byte, end byte) {
	for i := byteAt(text, end, 0); i < len(text); i = byteAt(text, end, i) {
		text[i] = unseen
	}
}
