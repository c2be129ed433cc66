package tune

import "sglaunch/internal/tune/bench"

// tries is how often a point is measured on one server until it counts.
const tries = 2

// nextPoint is the next point that a launch has to be measured at; more is
// false where none is left.
func (n *Night) nextPoint(l *launch) (p Point, more bool) {
	if l.left != nil && n.plan.Study.Prune {
		return Point{}, false
	}
	for _, p := range n.wanted(l) {
		if n.lacks(l, p) {
			return p, true
		}
	}
	return Point{}, false
}

// lacks tells whether a launch still has to be measured at a point.
func (n *Night) lacks(l *launch, p Point) bool {
	if p.Soak {
		return count(l, p) == 0
	}
	if _, ok := n.run(l, p); ok || count(l, p) >= tries {
		return false
	}
	return p.Probe || !n.enough(l, p)
}

// wanted are the points of a launch: all of the study in their order, before them
// a warm-up where the machine has rested, and for the first fresh launch of a
// finalist the worst case for memory, last. A launch in the morning proves itself
// at one point; the baseline has nothing left to prove.
func (n *Night) wanted(l *launch) []Point {
	points := n.plan.Study.Points()
	if l.Slot.Stage != Morning {
		points = n.inOrder(l, points)
	}
	if soak, ok := n.plan.Study.SoakPoint(); ok && l.rested && l.Slot.Stage != Morning {
		points = append([]Point{soak}, points...)
	}
	baseline := l.Slot.Trial == BaselineID
	switch {
	case l.Slot.Stage == Morning && baseline:
		return nil
	case l.Slot.Stage == Morning:
		return points[:1]
	}
	if probe, ok := n.plan.Study.ProbePoint(); ok && l.Slot.Stage == Confirm && !baseline && !n.probed(l) {
		points = append(points, probe)
	}
	return points
}

// probed tells whether an earlier launch of the trial has stood the probe.
func (n *Night) probed(l *launch) bool {
	for _, earlier := range n.of[l.Slot.Trial] {
		if earlier.Launch >= l.Launch || !n.current(earlier) || earlier.ended == nil {
			continue
		}
		for _, m := range earlier.measured {
			if m.Point.Probe && n.plan.Study.Broken(m) == "" {
				return true
			}
		}
	}
	return false
}

func count(l *launch, p Point) int {
	n := 0
	for _, m := range l.runs() {
		if m.Point == p {
			n++
		}
	}
	return n
}

// saturated is by how much throughput has to grow from one concurrency to the
// next for a higher one to be worth its time.
const saturated = 0.02

// enough tells that a point cannot change the verdict: at lower concurrencies
// of its load throughput no longer grew, or a constraint broke twice. It speaks
// only where the objective is a rate, which is judged at its best point.
func (n *Night) enough(l *launch, p Point) bool {
	if !n.plan.Study.Prune || !bench.HigherIsBetter(n.plan.Study.Objective.Metric) {
		return false
	}
	broken, before := 0, 0.0
	flat := false
	for _, m := range n.valid(l, p.Load) {
		if m.Point.Concurrency >= p.Concurrency {
			break
		}
		if broken++; n.breaks(m) == "" {
			broken = 0
		}
		rate := m.Result.Metrics[n.plan.Study.Objective.Metric]
		flat = before > 0 && rate < before*(1+saturated)
		before = rate
	}
	return flat || broken >= 2
}
