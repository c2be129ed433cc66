package phases

import "bytes"

// maxPiece bounds what is kept of one piece of output. SGLang's own longest
// line (server_args) has some 20 KB; what comes after the bound is counted, not
// kept.
const maxPiece = 64 << 10

// A piece is a stretch of output that was shown as one line: it ends at \n, at
// \r (a bar redrawn) or with the stream.
type piece struct {
	text   []byte // without its end; valid during the call only
	offset int64  // of its first byte
	line   int    // from 1; only \n counts
}

// A splitter cuts a stream into pieces, whatever the chunks it comes in. It
// keeps at most maxPiece bytes.
type splitter struct {
	tail   []byte // the begin of a piece whose end has not come yet
	offset int64  // of the next byte
	start  int64  // of the piece in tail
	line   int    // lines ended so far
	open   bool   // bytes have come since the last \n
}

// feed calls f for each piece that ends in p.
func (s *splitter) feed(p []byte, f func(piece)) {
	hasCR := bytes.IndexByte(p, '\r') >= 0
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		rest := p
		if end >= 0 {
			rest = p[:end]
		}
		if hasCR {
			for {
				cr := bytes.IndexByte(rest, '\r')
				if cr < 0 {
					break
				}
				s.endPiece(rest[:cr], f)
				s.open = true
				rest = rest[cr+1:]
			}
		}
		if end < 0 {
			s.keep(rest)
			return
		}
		s.endPiece(rest, f)
		s.line++
		s.open = false
		p = p[end+1:]
	}
}

// endPiece hands out the piece that last completes; its end is one byte more.
func (s *splitter) endPiece(last []byte, f func(piece)) {
	text, start := last, s.offset
	if len(s.tail) > 0 {
		start = s.start
		s.keep(last)
		text = s.tail
	} else {
		s.offset += int64(len(last))
		text = text[:min(len(text), maxPiece)]
	}
	s.offset++
	f(piece{text: text, offset: start, line: s.line + 1})
	s.tail = s.tail[:0]
}

// keep stores bytes of a piece whose end has not come yet.
func (s *splitter) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if len(s.tail) == 0 {
		s.start = s.offset
	}
	s.open = true
	s.offset += int64(len(p))
	s.tail = append(s.tail, p[:min(len(p), maxPiece-len(s.tail))]...)
}

// finish hands out the last piece where the stream ended inside one.
func (s *splitter) finish(f func(piece)) {
	if len(s.tail) > 0 {
		f(piece{text: s.tail, offset: s.start, line: s.line + 1})
		s.tail = s.tail[:0]
	}
	if s.open {
		s.line++
		s.open = false
	}
}
