package phases

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
)

// A Tracker reads the output of a launch and says what it means. The same bytes
// give the same observations, whatever the chunks they come in. Its memory is
// bounded whatever it is fed. It is not safe for use by several goroutines.
type Tracker struct {
	rules    *RuleSet
	split    splitter
	prefix   prefixer
	memo     memo
	found    []match // the rules that fit the message at hand
	scratch  []byte  // a frame written anew
	nodes    []*node
	bySource map[string]*node
	current  *node // of the last line
	earlier  []Earlier
	out      []Observation
	done     bool
	brief    bool // reading a file: last lines per rank are not kept, nothing is said before the report
	plodding bool // tests: every line goes the long way
	line     lineContext

	borrowers []*lastLines // hold lines of the chunk at hand
	survey    *survey      // of the chunk at hand; nil where there is none
	attempts  int          // of all nodes, and how many these are: what was known of ranks is old where it has grown
	ahead     []start      // scratch
	leaving   bool         // of what was surveyed last, nothing was read
}

// lineContext is the line at hand.
type lineContext struct {
	*piece
	h      header
	node   *node
	rank   *rankState
	dumped bool // a frame of a fatal signal's dump
	quotes bool // it is the record of a request: the words in it are others'
	key    int  // which open failure it belongs to: a torch rank number, or -1
}

// NewTracker begins at the start of a stream.
func NewTracker(rules *RuleSet) *Tracker {
	t := &Tracker{rules: rules, memo: newMemo(rules), bySource: make(map[string]*node)}
	t.split.scout.rules = rules
	t.split.skip = t.skip
	t.current = t.addNode(nil)
	return t
}

// feedSize is how much is taken apart at once: what a near cache holds, since
// the scout runs ahead through all of it.
const feedSize = 64 << 10

// Feed reads the next bytes, any number of them, and returns the facts learnt
// from the lines that they complete. The slice is valid until the next call.
func (t *Tracker) Feed(p []byte) []Observation {
	t.out = t.out[:0]
	for len(p) > 0 {
		n := min(len(p), feedSize)
		t.split.feed(p[:n], t.read)
		t.settle()
		p = p[n:]
	}
	return t.out
}

// feedSurveyed is Feed for a chunk that was surveyed, where only the report counts.
func (t *Tracker) feedSurveyed(s *stretch) {
	s.survey.ready()
	t.survey = s.survey
	t.split.feed(s.chunk, t.read)
	t.survey = nil
}

// teach tells a survey, before it looks at a chunk, which habit is known by now and
// whether what comes is likely to be read.
func (t *Tracker) teach(s *survey) {
	s.hasty = t.leaving
	if t.prefix.habit.known() {
		s.habit = t.prefix.habit
	}
}

// Miss says that the next n bytes of the stream are lost. The line that they cut
// counts as it came, and what follows begins another one, at its place in the
// stream; lines are counted without those that were lost.
func (t *Tracker) Miss(n int64) []Observation {
	t.out = t.out[:0]
	t.split.finish(t.read)
	t.split.offset += n
	return t.out
}

// Finish says that the stream has ended: a last line without an end counts, and
// a fault that nothing followed is now known to have been the last.
func (t *Tracker) Finish() []Observation {
	t.out = t.out[:0]
	t.split.finish(t.read)
	for _, n := range t.nodes {
		for _, key := range slices.Sorted(maps.Keys(n.open)) { // each may move the phase that the next one finds
			n.cut(n.open[key])
			n.end(key)
		}
	}
	t.done = true
	return t.out
}

// Phase is that of the launch: of its slowest rank. A node that failed and has told
// nothing else is not held against the others.
func (t *Tracker) Phase() Phase {
	slowest, told := Starting, false
	for _, n := range t.speaking() {
		p := n.ranks.phase()
		if p == Starting && !n.begun {
			continue
		}
		if !told || p < slowest {
			slowest, told = p, true
		}
	}
	return slowest
}

// Ready tells whether every node has said that it is ready.
func (t *Tracker) Ready() bool {
	for _, n := range t.speaking() {
		if !n.isReady() {
			return false
		}
	}
	return true
}

// IsSGLang tells whether any line was seen that only SGLang prints.
func (t *Tracker) IsSGLang() bool {
	for _, n := range t.nodes {
		if n.sglang {
			return true
		}
	}
	return false
}

// Ranks gives the phase of each rank seen, by name. A server that prints no
// ranks has one, "main".
func (t *Tracker) Ranks() map[string]Phase {
	all := make(map[string]Phase)
	for _, n := range t.speaking() {
		if len(n.ranks.list) == 0 {
			all[t.rankName(n, n.ranks.main)] = n.ranks.main.phase
		}
		for _, r := range n.ranks.list {
			all[t.rankName(n, r)] = n.ranks.phaseOf(r)
		}
	}
	return all
}

// Fault is the root fault so far, certain or not; nil where there is none.
func (t *Tracker) Fault() *Observation {
	n, best, f := t.rootFault()
	if best == nil {
		return nil
	}
	o := Observation{
		Kind: KindFault, Offset: best.offset, Line: best.line, Time: best.stamp.time(), Rank: best.label,
		RankPhase: best.rank.phase, Phase: t.Phase(), Cause: best.cause, Text: best.text, Certain: f.certain || n.certain(),
	}
	if best.rule != nil {
		o.Rule = best.rule.ID
	}
	return &o
}

// LastLines returns the last few lines of a rank, the oldest first, each cut to
// a sane length; "main" are those of the parent and without a rank.
func (t *Tracker) LastLines(rank string) []string {
	for _, n := range t.speaking() {
		for _, r := range append([]*rankState{n.ranks.main}, n.ranks.list...) {
			if t.rankName(n, r) == rank {
				return r.last.list()
			}
		}
	}
	return nil
}

// speaking lists the nodes that have said something; always at least one.
func (t *Tracker) speaking() []*node {
	if len(t.nodes) == 1 {
		return t.nodes
	}
	var said []*node
	for _, n := range t.nodes {
		if n.speaks() {
			said = append(said, n)
		}
	}
	if len(said) == 0 {
		return t.nodes[:1]
	}
	return said
}

// rankName is the name of a rank in answers: with its node where several speak.
func (t *Tracker) rankName(n *node, r *rankState) string {
	if len(t.nodes) > 2 || len(t.nodes) == 2 && t.nodes[0].speaks() && t.nodes[1].speaks() {
		return n.label + r.name
	}
	return r.name
}

// speaks tells whether a node has said something.
func (n *node) speaks() bool { return n.sglang || n.ranks.main.moved || len(n.failures) > 0 }

func (t *Tracker) addNode(source []byte) *node {
	n := newNode(len(t.nodes), string(source))
	number := n.index
	if slurm, ok := smallNumber(source); ok {
		number = slurm
	}
	n.label = "node" + strconv.Itoa(number) + "/"
	t.nodes = append(t.nodes, n)
	t.bySource[n.source] = n
	t.attempts++
	return n
}

// nodeOf finds the node that a line belongs to. Only SGLang's own lines make a
// node: what looks like a relay's prefix may be text.
func (t *Tracker) nodeOf(h *header) *node {
	if string(h.source) == t.current.source {
		return t.current
	}
	if n := t.bySource[string(h.source)]; n != nil {
		t.current = n
		return n
	}
	if !h.stamped || len(t.nodes) >= maxNodes {
		return t.current
	}
	if first := t.nodes[0]; len(t.nodes) == 1 && !first.sglang && (!first.started() || first.isOf(h.source)) {
		delete(t.bySource, first.source)
		first.source = string(h.source)
		t.bySource[first.source] = first
		t.attempts++
		return first
	}
	t.current = t.addNode(h.source)
	return t.current
}

// read takes one piece of output.
func (t *Tracker) read(p *piece) {
	if len(p.text) == 0 {
		return
	}
	h := header{number: -1, msg: p.text}
	if p.text[0] == '[' {
		h.msg = p.text[stampEnd(p.text, &h):]
	}
	if t.plodding {
		h.marks = markAll
	} else if t.dull(p, &h) {
		return
	}
	t.line.piece, t.line.h = p, h
	t.readPiece()
}

// readPiece reads every line of the piece at hand: what is glued together was
// printed apart.
func (t *Tracker) readPiece() {
	l := &t.line
	if l.quotes = isRecord(l.text); l.quotes {
		t.readLine()
		return
	}
	if before := t.prefix.parse(l.text, &l.h); before != nil {
		h := l.h
		l.h = header{number: -1, msg: before, source: h.source, marks: h.marks}
		t.readLine()
		l.h = h
	}
	if l.quotes = l.h.stamped && tellsRequest(l.h.msg); l.quotes {
		t.readLine() // a stamp inside of it is quoted, too
		return
	}
	for {
		next := glued(&l.h)
		if next == 0 {
			break
		}
		rest := l.h.msg[next:]
		l.h.msg = l.h.msg[:next]
		t.readLine()
		l.h = header{number: -1, source: l.h.source, marks: l.h.marks}
		l.h.msg = rest[stampEnd(rest, &l.h):]
	}
	if bars := barsLength(&l.h); bars > 0 {
		h, rest := l.h, l.h.msg[bars:]
		l.h.msg = l.h.msg[:bars]
		t.readLine()
		l.h = header{number: -1, source: h.source, marks: h.marks}
		l.h.strip(rest, &t.prefix.habit)
	}
	t.readLine()
}

// glued finds a second prefix inside a message, 0 where there is none.
func glued(h *header) int {
	if h.marks&markStamp == 0 {
		return 0
	}
	return max(findStamp(h.msg, 1), 0)
}

// readLine reads one message with its header.
func (t *Tracker) readLine() {
	l := &t.line
	n := t.nodeOf(&l.h)
	l.node, l.key = n, l.h.number
	l.rank = t.rankOf(n, &l.h)
	if l.h.stamp != nil {
		n.stamp.set(l.h.stamp)
	}
	if !t.brief && len(l.h.msg) > 0 {
		l.rank.last.add(l.h.msg)
	}
	if l.h.stamped {
		n.end(-1)
		if isRequest(l.h.msg) {
			t.request()
			return
		}
		if isBatch(l.h.msg) && n.serves() {
			return
		}
	}
	if !n.sglang && l.h.isSGLang() {
		n.sglang = true
	}
	t.examine()
}

// rankOf finds the rank that a line speaks for.
func (t *Tracker) rankOf(n *node, h *header) *rankState {
	if h.stamped && h.rank != nil {
		return n.ranks.get(h.rank)
	}
	if h.number < 0 && h.marks&markLiteral != 0 {
		h.number = ncclNumber(h.msg)
	}
	if h.number >= 0 {
		return n.ranks.numbered(h.number)
	}
	if h.stamped {
		return n.ranks.main
	}
	if f := n.open[-1]; f != nil && f.rank != nil {
		return f.rank
	}
	return n.ranks.main
}

var ncclMark = []byte("] NCCL ")

// ncclNumber reads the GPU in "host:pid:tid [3] NCCL WARN ...", -1 elsewhere.
func ncclNumber(msg []byte) int {
	head := msg[:min(len(msg), 160)]
	k := bytes.Index(head, ncclMark)
	if k < 0 {
		return -1
	}
	open := bytes.LastIndexByte(head[:k], '[')
	if open < 0 {
		return -1
	}
	if number, ok := smallNumber(head[open+1 : k]); ok {
		return number
	}
	return -1
}
