package phases

// maxPiece bounds what is kept of one piece of output. SGLang's own longest
// line (server_args) has some 20 KB; what comes after the bound is counted, not
// kept.
const maxPiece = 64 << 10

// A piece is a stretch of output that was shown as one line: it ends at \n, at
// \r (a bar redrawn) or with the stream.
type piece struct {
	text   []byte // without its end; as the piece, valid during the call only
	offset int64  // of its first byte
	line   int    // from 1; only \n counts

	from, to int // where it stands in the chunk; to is 0 where it came in several
}

// A splitter cuts a stream into pieces, whatever the chunks it comes in. It
// keeps at most maxPiece bytes.
type splitter struct {
	scout  scout
	skip   func(from int) (size, lines int) // how many lines from there on in the chunk need no look; nil: none
	next   piece                            // what is handed out
	tail   []byte                           // the begin of a piece whose end has not come yet
	offset int64                            // of the next byte
	start  int64                            // of the piece in tail
	line   int                              // lines ended so far
	open   bool                             // bytes have come since the last \n
}

// feed calls f for each piece that ends in p and needs a look.
func (s *splitter) feed(p []byte, f func(*piece)) {
	s.scout.begin(p)
	for from := 0; from < len(p); {
		if len(s.tail) == 0 && s.skip != nil {
			if size, lines := s.skip(from); lines > 0 {
				from += size
				s.offset += int64(size)
				s.line += lines
				s.open = false
				continue
			}
		}
		end := s.scout.end(from)
		if end == len(p) {
			s.keep(p[from:])
			return
		}
		s.endPiece(p, from, end, f)
		s.open = p[end] == '\r'
		if !s.open {
			s.line++
		}
		from = end + 1
	}
}

// endPiece hands out the piece that p[from:end] completes.
func (s *splitter) endPiece(p []byte, from, end int, f func(*piece)) {
	next := &s.next
	next.line = s.line + 1
	if len(s.tail) > 0 {
		s.keep(p[from:end])
		next.text, next.offset, next.to = s.tail, s.start, 0
	} else {
		next.text, next.offset, next.from, next.to = p[from:min(end, from+maxPiece)], s.offset, from, end
		s.offset += int64(end - from)
	}
	s.offset++
	f(next)
	s.tail = s.tail[:0]
}

// marks says what a piece that was handed out just now may hold.
func (s *splitter) marks(p *piece) marks {
	if p.to > 0 {
		return s.scout.look(p.from, p.to)
	}
	return lookAlone(s.scout.rules, p.text)
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
func (s *splitter) finish(f func(*piece)) {
	if len(s.tail) > 0 {
		f(&piece{text: s.tail, offset: s.start, line: s.line + 1})
		s.tail = s.tail[:0]
	}
	if s.open {
		s.line++
		s.open = false
	}
}
