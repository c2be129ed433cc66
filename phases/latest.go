package phases

import "bytes"

// Only the last attempts of an output are told of. Where starts stand close
// together, those that can't be among the last are known from what is surveyed
// ahead of the tracker, and are not read at all: each attempt begins from nothing.

// maxEarlier bounds the attempts that are told of beside the last.
const maxEarlier = 50

// maxHeld bounds the stretches that wait for what follows them.
const maxHeld = 64

// A start is a line of which a survey is sure that it begins an attempt.
type start struct {
	at     int // in its chunk
	line   int // lines before it there
	source int // its place among the voices' sources
	chunk  int // its place among the stretches held
	node   *node
}

// heed notes what a line that needs a look may be to others: the begin of an
// attempt, the first of its source, one that teaches a habit. A piece of a line
// that was redrawn stands nowhere (-1). glued tells whether the message may hold
// another one of SGLang's.
func (s *survey) heed(at int, text []byte, glued bool) {
	h := &s.h
	begins := bytes.HasPrefix(h.msg, serverArgs)
	switch {
	case begins && h.stamp != nil && h.stamped && !glued && at >= 0:
		s.starts = append(s.starts, start{at: at, line: s.lines, source: s.name(h.source)})
	case begins, glued && bytes.Contains(text, serverArgs), glued && !h.stamped && teaches(h.msg):
		s.hides = true
	case h.stamped || glued:
		s.name(h.source)
	}
}

// teaches tells whether a habit may be learned from the begin of a text.
func teaches(text []byte) bool {
	k := findStamp(text, 0)
	return k > 0 && k <= maxHabit && bytes.IndexByte(text[:k], '%') < 0
}

// name notes a source that a stamped line names: it may be a new node's.
func (s *survey) name(source []byte) (place int) {
	place, ok := s.voices.source(source)
	if !ok {
		s.hides = true
		return 0
	}
	s.named |= 1 << place
	return place
}

// leave passes over the begin of a chunk, unread.
func (s *survey) leave(size, lines int) { s.unread, s.unreadLines = size, lines }

// hold decides about the stretches that the tracker has not read yet: how many of
// them it is to read now. The others wait for more starts to come.
func (t *Tracker) hold(held []*stretch) (ready int) {
	ready, left := t.decide(held)
	switch {
	case ready > left:
		t.leaving = false
	case left > 0:
		t.leaving = true
	}
	return ready
}

// decide is hold; of those that are to be read now, left are wholly unread.
func (t *Tracker) decide(held []*stretch) (ready, left int) {
	if !t.begunEverywhere() {
		return len(held), 0
	}
	sure := 0
	for sure < len(held) && t.sees(held[sure]) {
		sure++
	}
	left, starts := t.leap(held[:sure])
	switch waiting := len(held) - left; {
	case sure < len(held), starts*maxHeld <= waiting*maxEarlier:
		return len(held), left
	case waiting == maxHeld:
		return left + 1, left
	}
	return left, left
}

// begunEverywhere tells whether every node has begun an attempt: another start is
// a new one, and nobody speaks for the first time.
func (t *Tracker) begunEverywhere() bool {
	for _, n := range t.nodes {
		if !n.sglang || !n.started() {
			return false
		}
	}
	return true
}

// sees tells whether nothing that matters to an attempt behind it can hide in a
// stretch.
func (t *Tracker) sees(s *stretch) bool {
	return !s.survey.hides && !s.torn && s.survey.habit.known() == t.prefix.habit.known()
}

// leap leaves unread what only attempts say that will be forgotten. Behind it each
// node begins anew, and then come so many more starts that nothing which was told
// before is told in the end. It returns how many stretches are wholly unread, and
// how many starts stand in the others.
func (t *Tracker) leap(held []*stretch) (left, starts int) {
	ahead := t.starts(held)
	to := len(ahead)
	if missing := len(t.nodes); len(ahead) > maxEarlier {
		begins := make(map[*node]bool, missing)
		for to = len(ahead) - maxEarlier; to > 0 && len(begins) < missing; {
			to--
			begins[ahead[to].node] = true
		}
		if len(begins) < missing {
			return 0, len(ahead)
		}
	}
	if to == len(ahead) || !t.know(held[:ahead[to].chunk+1]) {
		return 0, len(ahead)
	}
	for _, passed := range ahead[:to] {
		passed.node.attempts++
	}
	target := ahead[to]
	for _, s := range held[:target.chunk] {
		s.survey.leave(len(s.chunk), s.survey.lines)
	}
	held[target.chunk].survey.leave(target.at, target.line)
	return target.chunk, len(ahead) - to
}

// starts lists those of known nodes that stand ahead of the tracker.
func (t *Tracker) starts(held []*stretch) []start {
	t.ahead = t.ahead[:0]
	for i, stretch := range held {
		s := stretch.survey
		for _, one := range s.starts {
			one.chunk, one.node = i, t.bySource[string(s.voices.sources[one.source])]
			if one.at >= s.unread && one.node != nil {
				t.ahead = append(t.ahead, one)
			}
		}
	}
	return t.ahead
}

// know tells whether every source that is named there has a node.
func (t *Tracker) know(held []*stretch) bool {
	for _, stretch := range held {
		s := stretch.survey
		for i, name := range s.voices.sources {
			if s.named>>i&1 != 0 && t.bySource[string(name)] == nil {
				return false
			}
		}
	}
	return true
}
