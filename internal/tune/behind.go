package tune

import (
	"fmt"
	"math"
	"slices"

	"sglaunch/internal/tune/bench"
)

// A launch is measured first where the best so far scored: at its crests. What a
// trial gives there bounds what it can give at lower concurrencies, where a
// server never does more. So a trial that is far behind at the crests, and does
// not catch up above them, is behind whatever else is measured, and the rest of
// its launch is left out. That is of use in the screening alone: the baseline
// and the finalists are measured in full.

// leader is the best launch so far, of the trial that stands best or of the
// baseline, and by how much it is better than the baseline; ok is false where
// none counts yet.
func (n *Night) leader() (best sample, lead float64, ok bool) {
	id := BaselineID
	if all := n.standings(Screen, Narrow); len(all) > 0 && all[0].ratio > 0 {
		id, lead = all[0].trial, all[0].ratio
	}
	launches := n.samples(id, Screen, Narrow)
	if len(launches) == 0 {
		return sample{}, 0, false
	}
	return launches[len(launches)-1], lead, true
}

// crests are where the leader scored: of each load that is judged its best
// point. There are none where the objective is a latency, which is judged at all
// points alike, and none without pruning.
func (n *Night) crests() map[string]Point {
	s := n.plan.Study
	if !s.Prune || !bench.HigherIsBetter(s.Objective.Metric) {
		return nil
	}
	leader, _, ok := n.leader()
	if !ok {
		return nil
	}
	crests := map[string]Point{}
	for _, load := range s.Loads {
		best := 0.0
		for _, m := range n.valid(leader.launch, load.Name) {
			if x := m.Result.Metrics[s.Objective.Metric]; s.Objective.judges(load.Name) && x > best && n.breaks(m) == "" {
				crests[load.Name], best = m.Point, x
			}
		}
	}
	return crests
}

// inOrder puts the points of an open launch into their order: the crests, then, of
// a launch that is behind at them, what is above them, then the others.
func (n *Night) inOrder(l *launch, points []Point) []Point {
	if !l.open() {
		return points // all that counts then is which were measured
	}
	crests := n.crests()
	_, behind := n.behind(l, crests)
	place := func(p Point) int {
		switch crest, judged := crests[p.Load]; {
		case judged && p == crest:
			return 0
		case judged && behind && p.Concurrency > crest.Concurrency:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(points, func(a, b Point) int { return place(a) - place(b) })
	return points
}

// behind tells whether a launch is behind the leader, at the crests and above
// them, by more than the smallest effect that counts and what launches scatter
// by; gap is by how much. It is not while a crest was not measured yet, or not
// in a way that counts.
func (n *Night) behind(l *launch, crests map[string]Point) (gap float64, is bool) {
	if len(crests) == 0 {
		return 0, false
	}
	baseline := n.samples(BaselineID, Screen, Narrow) // some, or nobody would lead
	reached := 0.0
	for load, crest := range crests {
		at, most := false, 0.0
		for _, m := range n.valid(l, load) {
			if m.Point.Concurrency >= crest.Concurrency {
				at, most = at || m.Point == crest, max(most, m.Result.Metrics[n.plan.Study.Objective.Metric])
			}
		}
		if !at {
			return 0, false
		}
		reached += math.Log(most) / float64(len(crests))
	}
	_, lead, _ := n.leader()
	gap = baseline[len(baseline)-1].score + lead - reached
	return gap, gap > math.Log1p(n.plan.Study.MinimumEffect)+n.apart(baseline)
}

// needless is what need not be measured any more of an open launch whose next
// point is given: it cannot change that the trial is no candidate.
func (n *Night) needless(l *launch, next Point) (left LeftOut, ok bool) {
	if !n.plan.Study.Prune || l.Slot.Stage != Screen || l.Slot.Trial == BaselineID || next.Soak {
		return LeftOut{}, false
	}
	left = LeftOut{Launch: l.Launch, Text: n.unkept(l)}
	if crests := n.crests(); left.Text == "" {
		crest, judged := crests[next.Load]
		gap, behind := n.behind(l, crests)
		if !behind || judged && next.Concurrency >= crest.Concurrency {
			return LeftOut{}, false
		}
		left.Text = n.outpaced(gap, crests)
	}
	for _, p := range n.plan.Study.Points() {
		if n.lacks(l, p) {
			left.Points = append(left.Points, p)
		}
	}
	return left, true
}

// outpaced says how far behind a launch is.
func (n *Night) outpaced(gap float64, crests map[string]Point) string {
	var at []Point
	for _, load := range n.plan.Study.Loads {
		if crest, judged := crests[load.Name]; judged {
			at = append(at, crest)
		}
	}
	best, _, _ := n.leader()
	name := n.trials[best.Slot.Trial].Name
	if best.Slot.Trial != BaselineID {
		name += ", the best so far"
	}
	return fmt.Sprintf("at %s it is %.1f %% behind %s", PointsText(at), 100*(1-math.Exp(-gap)), name)
}
