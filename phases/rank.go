package phases

import (
	"strconv"
	"strings"
)

const (
	mainRank  = "main" // the parent, and everything of a single-GPU server
	maxRanks  = 16384  // of one node; more are hostile input
	maxNodes  = 256
	phaseSize = int(Serving) + 1
)

// A rankState is how far one rank has come.
type rankState struct {
	name   string
	phase  Phase
	moved  bool // some line told its phase
	number bool // it has no name but a library's number: which of the others it is, nobody said
	last   lastLines
}

// A rankTable holds the ranks of one node. The phase of the node is that of its
// slowest rank; a rank that has told nothing yet is not held against the others.
type rankTable struct {
	byName  map[string]*rankState
	list    []*rankState
	count   headcount // of the ranks that have a name
	numbers headcount // of the others
	main    *rankState
	latest  *rankState // known was asked for it last
}

// A headcount is how many ranks have moved, by phase.
type headcount [phaseSize]int

// slowest is the phase of the slowest of them.
func (c *headcount) slowest() (p Phase, ok bool) {
	for p, n := range c {
		if n > 0 {
			return Phase(p), true
		}
	}
	return Starting, false
}

// fastest is the phase of the fastest of them.
func (c *headcount) fastest() (p Phase, ok bool) {
	for p := phaseSize - 1; p >= 0; p-- {
		if c[p] > 0 {
			return Phase(p), true
		}
	}
	return Starting, false
}

func newRankTable() *rankTable {
	t := &rankTable{byName: make(map[string]*rankState)}
	t.main = &rankState{name: mainRank}
	t.main.last.limit = linesPerRank(0)
	return t
}

// get finds or makes a rank; "" is main. Beyond the bound all share one.
func (t *rankTable) get(name []byte) *rankState {
	if len(name) == 0 {
		return t.main
	}
	if r := t.byName[string(name)]; r != nil {
		return r
	}
	return t.add(string(name), false)
}

// numbered is the rank behind torch's or NCCL's number: TP<n> where ranks are
// plain tensor-parallel ones, else a rank of its own name.
func (t *rankTable) numbered(number int) *rankState {
	digits := strconv.Itoa(number)
	if r := t.byName["TP"+digits]; r != nil {
		return r
	}
	if t.byName["TP0"] != nil {
		return t.add("TP"+digits, false)
	}
	if r := t.byName["rank"+digits]; r != nil {
		return r
	}
	return t.add("rank"+digits, true)
}

// add makes a rank.
func (t *rankTable) add(name string, number bool) *rankState {
	if len(t.list) >= maxRanks {
		return t.main
	}
	r := &rankState{name: name, number: number}
	r.last.limit = linesPerRank(len(t.list))
	t.byName[r.name] = r
	t.list = append(t.list, r)
	if t.main.phase >= Warmup { // HTTP is up: nobody is behind that
		t.advance(r, t.main.phase)
	}
	return r
}

// known finds a rank that has spoken before, nil where it has not; "" is main.
func (t *rankTable) known(name []byte) *rankState {
	switch {
	case len(name) == 0:
		return t.main
	case t.latest == nil || t.latest.name != string(name):
		if r := t.byName[string(name)]; r != nil {
			t.latest = r
		} else {
			return nil
		}
	}
	return t.latest
}

// leader is the rank that draws the bars: the first of the lowest number, main
// where ranks are not told apart.
func (t *rankTable) leader() *rankState {
	for _, name := range [...]string{"TP0", "DP0 TP0", "DP0 TP0 EP0", "TP0 EP0", "PP0 TP0"} {
		if r := t.byName[name]; r != nil {
			return r
		}
	}
	return t.main
}

// advance moves a rank on; it never moves back. It tells whether it moved.
func (t *rankTable) advance(r *rankState, to Phase) bool {
	if r.moved && to <= r.phase || !r.moved && to < r.phase {
		return false
	}
	if r != t.main {
		count := &t.count
		if r.number {
			count = &t.numbers
		}
		if r.moved {
			count[r.phase]--
		}
		count[to]++
	}
	changed := !r.moved || r.phase != to
	r.moved, r.phase = true, to
	return changed
}

// raise lifts main and every rank to at least a phase: HTTP is up, ready.
func (t *rankTable) raise(to Phase) {
	t.advance(t.main, to)
	for _, r := range t.list {
		t.advance(r, to)
	}
}

// barrier lifts the ranks that one rank must have waited for: sizing the memory
// pool and capturing a graph take collectives over all ranks of its group.
func (t *rankTable) barrier(from *rankState, to Phase) {
	for _, r := range t.list {
		if r.moved && r.phase < to && t.grouped(from, r) {
			t.advance(r, to)
		}
	}
}

// grouped tells whether two ranks share their collectives. Groups of different
// DP numbers are independent, each with a TP0 of its own, unless only the
// attention is data-parallel: then the TP numbers run on.
func (t *rankTable) grouped(a, b *rankState) bool {
	one, other := dpPart(a.name), dpPart(b.name)
	return one == other || one != "" && other != "" && !(t.leads(one) && t.leads(other))
}

// leads tells whether a data-parallel part has a TP0 of its own.
func (t *rankTable) leads(part string) bool {
	return t.byName[part+" TP0"] != nil || t.byName[part+" TP0 EP0"] != nil
}

// dpPart is the data-parallel part of a rank's name: "DP1" of "DP1 TP3".
func dpPart(name string) string {
	if !strings.HasPrefix(name, "DP") {
		return ""
	}
	part, _, _ := strings.Cut(name, " ")
	return part
}

// phase is that of the slowest rank that has told one. Those that are mere numbers
// are among the named ones: they count where nobody with a name has spoken.
func (t *rankTable) phase() Phase {
	if p, ok := t.count.slowest(); ok {
		return p
	}
	p, _ := t.numbers.slowest()
	return max(p, t.main.phase)
}

// furthest is the phase of the fastest rank.
func (t *rankTable) furthest() Phase {
	p, ok := t.count.fastest()
	if !ok {
		p, _ = t.numbers.fastest()
	}
	return max(p, t.main.phase)
}

// phaseOf is that of one rank: a mere number is no slower than the slowest, being one
// of them, nor is main, for whom lines of any of them count.
func (t *rankTable) phaseOf(r *rankState) Phase {
	if r.number || r == t.main {
		return max(r.phase, t.phase())
	}
	return r.phase
}

// lastLines keeps the last few lines of a rank, each bounded, for evidence. A
// line may stay where it is until settle: of a chunk full of lines few are among
// the last.
type lastLines struct {
	ring     []lastLine
	next     int
	limit    int
	borrowed bool // some line may be
}

type lastLine struct {
	text     []byte
	own      []byte // memory for it
	borrowed bool   // text lies elsewhere
}

const lastLineBytes = 300

// linesPerRank gives many ranks fewer lines each, so that the whole stays small.
func linesPerRank(rank int) int {
	if rank < 256 {
		return 20
	}
	return 2
}

// add copies a line.
func (l *lastLines) add(text []byte) {
	line := l.borrow(text)
	line.settle()
}

// borrow keeps a line that stays as it is until settle is called.
func (l *lastLines) borrow(text []byte) *lastLine {
	if len(l.ring) < max(l.limit, 2) {
		l.ring = append(l.ring, lastLine{})
		l.next = len(l.ring) - 1
	}
	line := &l.ring[l.next]
	line.text, line.borrowed = text[:min(len(text), lastLineBytes)], true
	if l.next++; l.next == len(l.ring) {
		l.next = 0
	}
	return line
}

// settle copies what was borrowed.
func (l *lastLines) settle() {
	for i := range l.ring {
		l.ring[i].settle()
	}
	l.borrowed = false
}

func (l *lastLine) settle() {
	if l.borrowed {
		l.own = append(l.own[:0], l.text...)
		l.text, l.borrowed = l.own, false
	}
}

// list returns copies, the oldest first.
func (l *lastLines) list() []string {
	var all []string
	for i := range l.ring {
		all = append(all, string(l.ring[(l.next+i)%len(l.ring)].text))
	}
	return all
}
