package phases

import (
	"slices"
	"sort"
	"time"
)

const (
	maxEchoes = 50

	confidenceHigh   = "high"
	confidenceMedium = "medium"
	confidenceLow    = "low"
)

// Report tells what the output so far means as a whole. After Finish the last
// lines are known to be the last: a fault that ends the output is a failure.
func (t *Tracker) Report() Report {
	r := Report{
		Phase: t.Phase(), Ready: t.Ready(), Ranks: t.Ranks(), Lines: t.split.line,
		Earlier: t.earlier,
	}
	if !t.done && t.split.open {
		r.Lines++
	}
	t.describe(&r)
	t.explain(&r)
	return r
}

// describe fills in what needs no judgement.
func (t *Tracker) describe(r *Report) {
	attempts := 0
	furthest := Starting
	r.Numbers = make(map[string]float64)
	for _, n := range t.speaking() {
		attempts = max(attempts, n.attempts)
		furthest = max(furthest, n.ranks.furthest())
		r.Drained = r.Drained || n.drained
		for name, v := range n.numbers {
			r.Numbers[name] = v
		}
		r.Activities, r.Drift = addNew(r.Activities, n.active), addNew(r.Drift, n.drift)
		if n.moveLine > 0 && (r.LastProgress == nil || n.moveLine > r.LastProgress.Line) {
			r.LastProgress = &Mark{Line: n.moveLine, Time: timestamp(n.moveStamp.time())}
		}
		if n.bar != nil {
			r.Progress = n.bar.progress()
		}
		if len(r.Phases) == 0 || len(n.spans) > len(r.Phases) {
			r.Phases = append([]Span{}, n.spans...)
		}
	}
	if r.Phases == nil {
		r.Phases = []Span{}
	}
	if attempts > 1 {
		r.Attempts = attempts
	}
	if !r.Ready {
		r.Lagging = t.lagging(furthest)
	}
}

// lagging names the ranks that others have left behind.
func (t *Tracker) lagging(furthest Phase) []string {
	var names []string
	for _, n := range t.speaking() {
		if len(n.ranks.list) == 0 && n.ranks.main.phase < furthest {
			names = append(names, t.rankName(n, n.ranks.main))
		}
		for _, r := range n.ranks.list {
			if !r.number && r.phase < furthest {
				names = append(names, t.rankName(n, r))
			}
		}
	}
	sort.Strings(names)
	return names
}

// addNew appends what is not there yet.
func addNew(all, more []string) []string {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// explain decides whether it failed and why.
func (t *Tracker) explain(r *Report) {
	n, best, root := t.rootFault()
	switch {
	case best != nil && (n.certain() || t.done && root.fails(n.isReady())):
		r.Failed = true
		r.Phase = max(r.Phase, n.failedIn(best, root))
		r.Root = best.evidence()
		r.setCause(best.cause, confidence(best, root, n))
		t.echoes(r, best)
	case !r.Ready && t.done:
		if n, held := t.holding(); held != nil {
			r.setCause(held.cause, confidenceLow)
			if held.line > 0 {
				r.Phase = max(r.Phase, n.phaseOf(held, nil))
				r.Root = held.evidence()
			}
		}
	}
}

// failedIn is the phase in which the root failure struck. Where neither its rank
// nor its frames tell, the frames of the next failure do.
func (n *node) failedIn(best *fault, root *failure) Phase {
	phase := n.phaseOf(best, root)
	for _, f := range n.failures {
		if phase > Starting || n.begun {
			break
		}
		if f.hint != nil {
			phase = *f.hint
		}
	}
	return phase
}

func (r *Report) setCause(name, confidence string) {
	if name == "" {
		name = "unknown"
	}
	r.Cause, r.Confidence = &name, confidence
	if c, ok := LookupCause(name); ok {
		r.Retry, r.Cure, r.Remedy = c.Retry, c.Cure, c.Remedy
	}
}

// confidence: high where a rule names the cause and the output proves the
// failure; medium where one of the two is missing; low for a mere consequence.
func confidence(best *fault, root *failure, n *node) string {
	switch {
	case best.cause == "" || best.cause == "unknown":
		return confidenceLow
	case best.rule == nil, best.cause == genericCause, !best.stands() && best.severity != SeverityClue, !n.certain():
		return confidenceMedium
	}
	return confidenceHigh
}

// rootFault is the fault that explains everything, over all nodes: the first
// that states a cause of its own, else the first consequence.
func (t *Tracker) rootFault() (*node, *fault, *failure) {
	var bestNode *node
	var best *fault
	var root *failure
	for _, n := range t.speaking() {
		f, failed := n.cause()
		if f == nil {
			continue
		}
		stronger := best == nil || f.stands() && !best.stands()
		earlier := best != nil && f.stands() == best.stands() && f.offset < best.offset
		if stronger || earlier {
			bestNode, best, root = n, f, failed
		}
	}
	return bestNode, best, root
}

// echoes lists the best line of every other failure, in order.
func (t *Tracker) echoes(r *Report, root *fault) {
	var all []*fault
	for _, n := range t.speaking() {
		r.EchoesTotal += n.dropped
		for _, f := range n.failures {
			if f.best != nil && f.best != root && !f.harness && f.best.offset != root.offset {
				all = append(all, f.best)
			}
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].offset < all[j].offset })
	r.EchoesTotal += len(all)
	for _, f := range all[:min(len(all), maxEchoes)] {
		r.Echoes = append(r.Echoes, *f.evidence())
	}
}

func (f *fault) evidence() *Evidence {
	return &Evidence{Line: f.line, Rank: f.label, Text: f.text, Time: timestamp(f.stamp.time())}
}

// holding is what a start that merely stops seems to wait for: the last clue
// that nothing outlived, or a phase whose end never came.
func (t *Tracker) holding() (where *node, held *fault) {
	for _, n := range t.speaking() {
		if n.drained || n.isReady() {
			continue
		}
		for _, c := range n.clues {
			if c.cause != "" && (held == nil || c.offset > held.offset) {
				where, held = n, c
			}
		}
		if held == nil && n.ranks.phase() == DistributedInit && n.begun {
			held = &fault{cause: "nccl_init_hang"}
		}
		if held == nil && n.ranks.phase() == GraphCapture && n.bar != nil && n.bar.done == 0 {
			held = &fault{cause: "jit_compile"}
		}
	}
	return where, held
}

// summary is what remains of an attempt that another follows.
func (t *Tracker) summary(n *node) Earlier {
	e := Earlier{Phase: n.ranks.phase(), Ready: n.isReady(), Lines: t.line.line - 1}
	if best, _ := n.cause(); best != nil && !n.drained {
		e.Failed = true
		e.Phase = max(e.Phase, best.rank.phase)
		cause := best.cause
		if cause == "" {
			cause = "unknown"
		}
		e.Cause, e.Root = &cause, best.evidence()
	}
	return e
}

// consequences are causes that usually have another one behind them, in the
// output of another rank or node.
var consequences = map[string]bool{
	"peer_rank_failed": true, "nccl_error": true, "nccl_timeout": true, "nccl_init_hang": true, "unknown": true,
}

// FirstFailure is the index of the report, among those of the nodes of one
// launch, whose failure explains the others: the earliest that states a cause
// of its own, else the earliest. It is -1 where none failed.
func FirstFailure(nodes []Report) int {
	first := -1
	better := func(a, b Report) bool {
		if own, other := !consequences[*a.Cause], !consequences[*b.Cause]; own != other {
			return own
		}
		if a.Root == nil || b.Root == nil || a.Root.Time == nil || b.Root.Time == nil {
			return false
		}
		return time.Time(*a.Root.Time).Before(time.Time(*b.Root.Time))
	}
	for i, r := range nodes {
		if r.Failed && r.Cause != nil && (first < 0 || better(r, nodes[first])) {
			first = i
		}
	}
	return first
}
