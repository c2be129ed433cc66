package phases

import "bytes"

// A survey is what can be said of the lines of a chunk without knowing what came
// before it: which of them tell nothing. Most of a long output is such lines, and
// chunks can be surveyed beside each other; the tracker then only reads what is
// left, in order.
type survey struct {
	scout scout
	chunk []byte
	runs  []run
	ranks [][]byte // seen in runs; the first is main
	h     header

	next  int        // the first run that was not passed yet
	table *rankTable // whose ranks were looked up last
	known uint64     // those that it has
}

// A run is a stretch of whole lines of one kind.
type run struct {
	from, to int // in the chunk
	lines    int
	kind     lineKind
	ranks    uint64 // by their places in the survey
	stamp    []byte // the last one
}

// lineKind says what can be told of a line by itself.
type lineKind int8

const (
	telling lineKind = iota // it needs a look
	routine                 // no news of a server that serves
	dull                    // no news
)

// maxSurveyRanks bounds the ranks of a survey by the bits of a run.
const maxSurveyRanks = 64

func newSurvey(rules *RuleSet) *survey {
	return &survey{scout: scout{rules: rules}}
}

// look surveys a chunk, which must stay as it is until the tracker has read it.
func (s *survey) look(chunk []byte) {
	s.scout.begin(chunk)
	s.chunk, s.runs, s.ranks, s.next, s.table = chunk, s.runs[:0], append(s.ranks[:0], nil), 0, nil
	fresh := true // the next line begins a run
	for from := 0; from < len(chunk); {
		end := bytes.IndexByte(chunk[from:], '\n')
		if end < 0 {
			return
		}
		end += from
		kind := s.judge(from, end)
		rank, isNew := 0, false
		if kind != telling {
			rank, isNew = s.rank(s.h.rank)
		}
		switch {
		case kind == telling || rank == maxSurveyRanks:
			fresh = true
		case fresh || isNew || kind != s.runs[len(s.runs)-1].kind:
			s.runs = append(s.runs, run{from: from, kind: kind})
			fallthrough
		default:
			s.extend(&s.runs[len(s.runs)-1], end+1, rank)
			fresh = isNew // a rank may be new to the tracker as well: its first line stands alone
		}
		from = end + 1
	}
}

// extend adds the line at hand to a run.
func (s *survey) extend(r *run, to, rank int) {
	r.to = to
	r.lines++
	r.ranks |= 1 << rank
	if s.h.stamp != nil {
		r.stamp = s.h.stamp
	}
}

// judge says what can be told of the line between two places of the chunk.
func (s *survey) judge(from, end int) lineKind {
	line := s.chunk[from:end]
	h := &s.h
	h.rank, h.stamp, h.stamped, h.msg = nil, nil, false, line
	switch {
	case len(line) == 0:
		return dull
	case len(line) > maxPiece || s.scout.nextRedraw(from) < end:
		return telling
	case line[0] == '[':
		h.msg = line[stampEnd(line, h):]
		if h.isRoutine() {
			return routine
		}
	}
	if s.scout.look(from, end) != 0 || s.scout.rules.mayKnow(h) {
		return telling
	}
	return dull
}

// rank is the place of a rank in the survey; maxSurveyRanks where it has none.
func (s *survey) rank(name []byte) (place int, isNew bool) {
	for i, known := range s.ranks {
		if string(known) == string(name) {
			return i, false
		}
	}
	if len(s.ranks) == maxSurveyRanks {
		return maxSurveyRanks, false
	}
	s.ranks = append(s.ranks, name)
	return len(s.ranks) - 1, true
}

// pass passes over the run that begins at a place of the chunk, if the tracker
// knows enough to. What it passes over, the long way would pass over too.
func (s *survey) pass(t *Tracker, from int) (size, lines int) {
	for s.next < len(s.runs) && s.runs[s.next].from < from {
		s.next++
	}
	if s.next == len(s.runs) || s.runs[s.next].from != from {
		return 0, 0
	}
	n, r := t.current, &s.runs[s.next]
	switch {
	case n.source != "" || len(n.open) > 0 || r.kind == routine && !n.serves():
		return 0, 0
	case r.kind == dull && t.prefix.habit.known():
		return 0, 0
	case r.ranks > 1 && !n.sglang || !s.knows(n.ranks, r.ranks):
		return 0, 0
	}
	if r.stamp != nil {
		n.stamp.set(r.stamp)
	}
	return r.to - r.from, r.lines
}

// knows tells whether ranks of the survey have spoken before.
func (s *survey) knows(table *rankTable, ranks uint64) bool {
	if s.table == table && ranks&^s.known == 0 {
		return true
	}
	s.table, s.known = table, 0
	for i, name := range s.ranks {
		if table.known(name) != nil {
			s.known |= 1 << i
		}
	}
	return ranks&^s.known == 0
}
