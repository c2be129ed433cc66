package phases

import "slices"

// A node is one source of output: usually the whole stream, or one container,
// pod, actor or task of it. It holds the last start attempt seen there.
type node struct {
	index  int
	source string
	label  string // "node1/" where ranks need it

	ranks     *rankTable
	attempts  int
	begun     bool // a line of a start was seen: an early batch is the warm-up's
	warming   bool // no such line, but the server asked itself what it serves
	sglang    bool // a line was seen that only SGLang prints
	ready     bool
	inferred  bool // ready was never said, but several requests run at once
	drained   bool // an orderly shutdown was asked for
	fromStart bool // its first line was seen
	busy      int  // batches of several requests before ready
	failures  []*failure
	dropped   int // failures beyond the bound
	clues     []*fault
	open      map[int]*failure // by torch rank number, -1 for lines without
	handled   int              // the line that announced a handled traceback
	counters  map[counterKey]*counter
	bar       *barState // the last counter that moved
	numbers   map[string]float64
	active    []string // activities, in order of appearance
	seenRules hitSet   // by number
	repeats   map[string]int
	moveLine  int   // of the last sign of progress, 0 where there is none
	moveStamp stamp // its time
	spans     []Span
	drift     []string // expected rules that never matched although it got ready
	stamp     stamp    // of the last line that carried a time
}

// A counterKey is the rule that knows a bar, "" where none does, and what tells
// two bars of one rule apart.
type counterKey struct{ rule, name string }

// A barState is what a bar showed.
type barState struct {
	done, total int64
	unit        string
	desc        []byte
}

// progress is the state as reported.
func (b *barState) progress() *Progress {
	return &Progress{Done: b.done, Total: b.total, Unit: b.unit, Name: clip(b.desc, maxBarName)}
}

// A counter is one bar: a later pass of the same bar counts anew.
type counter struct {
	done, total int64
	pass        int
}

func newNode(index int, source string) *node {
	n := &node{index: index, source: source}
	n.reset()
	return n
}

// reset begins an attempt.
func (n *node) reset() {
	n.attempts++
	n.ranks = newRankTable()
	n.begun, n.warming, n.ready, n.inferred, n.drained, n.fromStart, n.busy = false, false, false, false, false, false, 0
	n.failures, n.dropped, n.clues = nil, 0, nil
	n.open = make(map[int]*failure)
	n.counters = make(map[counterKey]*counter)
	n.bar, n.active, n.spans, n.drift = nil, nil, nil, nil
	n.numbers = make(map[string]float64)
	n.seenRules.reset()
	n.repeats = make(map[string]int)
	n.moveLine = 0
}

// started tells whether the attempt has shown anything of itself, so that
// another start line is a new attempt and not an echo of the first.
func (n *node) started() bool {
	return n.ranks.main.moved || len(n.ranks.list) > 0 || len(n.failures) > 0 || n.drained
}

// isOf tells whether all that was seen of a start are failures that one source
// relayed: an excerpt may begin inside a traceback.
func (n *node) isOf(source []byte) bool {
	for _, f := range n.failures {
		if f.source != string(source) {
			return false
		}
	}
	return len(n.failures) > 0 && len(n.ranks.list) == 0 && !n.drained
}

// isReady: the ready line, or the work of a server whose ready line is not in
// the excerpt.
func (n *node) isReady() bool { return n.ready || n.inferred }

// end closes a failure that collected lines. Its traceback may have been cut: then
// nothing but its frames tells where it was raised.
func (n *node) end(key int) {
	if f := n.open[key]; f != nil {
		n.settle(f)
		delete(n.open, key)
	}
}

// close ends the failures that collect lines.
func (n *node) close() { clear(n.open) }

// fail opens a failure, or returns nil where too many are kept already.
func (n *node) fail(rank *rankState) *failure {
	if len(n.failures) >= maxFailures {
		n.dropped++
		return nil
	}
	f := &failure{rank: rank}
	n.failures = append(n.failures, f)
	return f
}

// outlived forgets what did not stop the rank (nil: anybody): a handled error
// is no cause of anything.
func (n *node) outlived(rank *rankState) {
	keep := n.failures[:0]
	for _, f := range n.failures {
		if f.certain || rank != nil && f.rank != rank {
			keep = append(keep, f)
		}
	}
	n.failures = keep
	clues := n.clues[:0]
	for _, c := range n.clues {
		if rank != nil && c.rank != rank {
			clues = append(clues, c)
		}
	}
	n.clues = clues
	if len(n.failures) == 0 {
		n.close()
	}
}

// certain tells whether the output itself proves a failure.
func (n *node) certain() bool {
	for _, f := range n.failures {
		if f.certain {
			return true
		}
	}
	return false
}

// root is the failure that explains the others: the first that states a cause
// of its own, else the first wrapper, else the first consequence.
func (n *node) root() *failure {
	var root *failure
	for _, f := range n.failures {
		if f.harness || f.best == nil {
			continue
		}
		if f.best.stands() && !n.explained(f.best) {
			return f
		}
		if root == nil || f.best.strength() > root.best.strength() {
			root = f
		}
	}
	return root
}

// explained tells whether a rule that this fault depends on was seen as well.
func (n *node) explained(f *fault) bool {
	if f.rule == nil || len(f.rule.DependsOn) == 0 {
		return false
	}
	for _, other := range n.failures {
		if other.best != nil && other.best.rule != nil && slices.Contains(f.rule.DependsOn, other.best.rule.ID) {
			return true
		}
	}
	return false
}

// cause is the fault that states the root cause, nil where nothing failed: the
// root failure's best line, or an earlier clue that says the same more plainly.
func (n *node) cause() (*fault, *failure) {
	root := n.root()
	if root == nil {
		return nil, nil
	}
	best := root.best
	for _, c := range n.clues {
		same := c.cause == best.cause || !best.stands()
		if same && c.offset < best.offset && c.cause != "" && !n.explained(c) {
			return c, root
		}
	}
	return best, root
}
