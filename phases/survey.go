package phases

import (
	"bytes"
	"math/bits"
)

// A survey is what can be said of the lines of a chunk without knowing what came
// before it: which of them tell nothing. Most of a long output is such lines, and
// chunks can be surveyed beside each other; the tracker then only reads what is
// left, in order.
type survey struct {
	scout  scout
	habit  habit // what the tracker had learned when the chunk was handed out
	hasty  bool  // nobody will read this, as it seems: only starts and sources are looked for
	chunk  []byte
	clear  clearText
	text   []byte // of the chunk: itself, or how it reads
	runs   []run
	stamps [][]byte // of the runs: for each source the last one
	voices voices
	h      header // of the line at hand
	at, to int    // where it stands in the chunk, with its end

	lines  int     // ended so far
	starts []start // of attempts
	named  uint16  // sources of stamped lines
	hides  bool    // more starts, sources or a habit may stand here

	next                int // the first run that was not passed yet
	unread, unreadLines int // what the tracker does not read at the begin
}

// A run is a stretch of whole lines of one kind.
type run struct {
	from, to int // in the chunk
	lines    int
	kind     lineKind
	voices   uint64 // who speaks in it
	sources  uint16 // and for whom
	last     int    // the source of its last line
	stamps   int    // where its stamps begin
}

// lineKind says what can be told of a line by itself.
type lineKind int8

const (
	telling lineKind = iota // it needs a look
	routine                 // no news of a server that serves
	dull                    // no news
	blank                   // nothing at all
)

func newSurvey(rules *RuleSet) *survey {
	return &survey{scout: scout{rules: rules}}
}

// look surveys a chunk, which must stay as it is until the tracker has read it.
func (s *survey) look(chunk []byte) {
	s.voices.reset()
	s.chunk, s.runs, s.stamps, s.next = chunk, s.runs[:0], s.stamps[:0], 0
	s.lines, s.starts, s.named, s.hides = 0, s.starts[:0], 0, false
	s.leave(0, 0)
	s.scout.begin(chunk)
	s.text, s.at, s.to = chunk, 0, 0
	wrapped := s.scout.isWrapped()
	if wrapped {
		s.text = s.clear.of(chunk)
		s.scout.begin(s.text)
	}
	fresh := true // the next line begins a run
	for from := 0; from < len(s.text); {
		end := bytes.IndexByte(s.text[from:], '\n')
		if end < 0 {
			return
		}
		end += from
		s.at, s.to = s.to, end+1
		if wrapped {
			s.to = s.clear.ends[s.lines] + 1
		}
		fresh = s.add(from, end, fresh)
		from = end + 1
		s.lines++
	}
}

// ready makes sure that a chunk that will be read was surveyed in full.
func (s *survey) ready() {
	if s.hasty && s.unread < len(s.chunk) {
		size, lines := s.unread, s.unreadLines
		s.hasty = false
		s.look(s.chunk)
		s.leave(size, lines)
	}
}

// add puts a line to the run before it, where it may, or begins one. It tells
// whether the next line may not go on with that.
func (s *survey) add(from, end int, fresh bool) (over bool) {
	kind := s.judge(from, end)
	switch kind {
	case telling:
		return true
	case blank:
		if fresh {
			s.begin(dull)
		}
		s.extend()
		return false
	}
	place, isNew, ok := s.voices.hear(&s.h)
	if !ok {
		s.hides = true
		return true
	}
	if s.h.stamped {
		s.named |= 1 << s.voices.list[place].source
	}
	if fresh || isNew || kind != s.run().kind {
		s.begin(kind)
	}
	s.extend()
	s.speak(place)
	return isNew // a voice may be new to the tracker as well: its first line stands alone
}

// run is the one at hand.
func (s *survey) run() *run { return &s.runs[len(s.runs)-1] }

func (s *survey) begin(kind lineKind) {
	s.runs = append(s.runs, run{from: s.at, kind: kind, stamps: len(s.stamps)})
	for range s.voices.sources {
		s.stamps = append(s.stamps, nil)
	}
}

// extend adds the line to the run at hand.
func (s *survey) extend() {
	r := s.run()
	r.to = s.to
	r.lines++
}

// speak notes whose line that is.
func (s *survey) speak(place int) {
	r := s.run()
	r.voices |= 1 << place
	r.last = s.voices.list[place].source
	r.sources |= 1 << r.last
	if s.h.stamp != nil {
		s.stamps[r.stamps+r.last] = s.h.stamp
	}
}

// judge says what can be told of the line between two places of the text.
func (s *survey) judge(from, end int) lineKind {
	redraw := s.scout.nextRedraw(from)
	next := end
	if redraw == end-1 { // \r\n
		end--
	}
	line := s.text[from:end]
	switch {
	case len(line) == 0:
		return blank
	case len(line) > maxPiece || line[0] == '{' || s.scout.nextEscape(from) < next:
		s.hides = true
		return telling
	case redraw < end:
		s.redrawn(line)
		return telling
	}
	h := &s.h
	s.strip(line, s.scout.nextPipe(from) < end)
	if s.hasty {
		s.hides = s.hides || isDoubled(h) || !s.habit.known() && h.stamped && isDated(line)
		s.heed(s.at, line, s.scout.nextStamp(end-len(h.msg)+1) < end)
		return telling
	}
	teaching := isDigit(line[0]) && h.stamped && !s.habit.known() && isDated(line)
	if h.number < 0 && h.isRoutine() && !teaching {
		return routine
	}
	found := marks(0)
	if len(h.msg) > 0 {
		found = s.scout.look(end-len(h.msg), end)
	}
	if found == 0 && h.number < 0 && !isDoubled(h) && !h.raises() && !teaching {
		return dull
	}
	s.hides = s.hides || isDoubled(h) || teaching
	s.heed(s.at, line, found&markStamp != 0)
	return telling
}

// strip takes the prefixes off a line.
func (s *survey) strip(line []byte, piped bool) {
	h := &s.h
	*h = header{number: -1}
	n := stampEnd(line, h)
	switch {
	case n > 0 && (h.rank != nil || s.habit.length(line) != n):
		h.msg = line[n:]
		return
	case n > 0: // the relay's
		*h = header{number: -1}
	}
	if piped {
		h.marks = markPipe
	}
	h.strip(line[n:], &s.habit)
}

// redrawn looks at the pieces of a line.
func (s *survey) redrawn(line []byte) {
	for piece := range bytes.SplitSeq(line, []byte{'\r'}) {
		if len(piece) == 0 {
			continue
		}
		s.strip(piece, true)
		s.hides = s.hides || piece[0] == '{' || isDoubled(&s.h)
		s.heed(-1, piece, bytes.Contains(s.h.msg, stampMark))
	}
}

// pass passes over the run that begins at a place of the chunk, if the tracker
// knows enough to. What it passes over, the long way would pass over too.
func (s *survey) pass(t *Tracker, from int) (size, lines int) {
	if from < s.unread {
		return s.unread - from, s.unreadLines
	}
	for s.next < len(s.runs) && s.runs[s.next].from < from {
		s.next++
	}
	if s.next == len(s.runs) || s.runs[s.next].from != from {
		return 0, 0
	}
	r := &s.runs[s.next]
	if s.habit.known() != t.prefix.habit.known() || !s.voices.have(r.voices, t) {
		return 0, 0
	}
	for sources := r.sources; sources != 0; sources &= sources - 1 {
		n := s.voices.nodes[bits.TrailingZeros16(sources)]
		switch {
		case len(n.open) > 0, r.kind == routine && !n.serves(), r.voices&s.voices.ranked != 0 && !n.sglang:
			return 0, 0
		}
	}
	for sources := r.sources; sources != 0; sources &= sources - 1 {
		source := bits.TrailingZeros16(sources)
		t.current = s.voices.nodes[source]
		if stamp := s.stamps[r.stamps+source]; stamp != nil {
			t.current.stamp.set(stamp)
		}
	}
	if r.sources != 0 {
		t.current = s.voices.nodes[r.last]
	}
	return r.to - r.from, r.lines
}
