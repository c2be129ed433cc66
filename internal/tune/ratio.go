package tune

import (
	"cmp"
	"slices"
)

// sample is one launch with a score.
type sample struct {
	*launch
	score float64
}

// samples are the launches of a trial that count in the given stages, in order.
func (n *Night) samples(trial string, stages ...Stage) []sample {
	var all []sample
	for _, l := range n.of[trial] {
		if !slices.Contains(stages, l.Slot.Stage) || !n.current(l) {
			continue
		}
		if o := n.outcome(l); o.status == scored {
			all = append(all, sample{l, o.score})
		}
	}
	return all
}

// beside is the score of the baseline beside a launch: the mean of the one
// before and the one after it, or of the one that there is. ok is false where
// there is none. The fresh launches have baselines of their own, so they cannot
// move the standings that chose them.
func (n *Night) beside(l *launch) (score float64, ok bool) {
	stages := []Stage{Screen, Narrow}
	if l.Slot.Stage == Confirm {
		stages = []Stage{Confirm}
	}
	var before, after *sample
	for _, b := range n.samples(BaselineID, stages...) {
		switch {
		case b.Launch < l.Launch:
			before = &b
		case b.Launch > l.Launch && after == nil:
			after = &b
		}
	}
	switch {
	case before != nil && after != nil:
		return (before.score + after.score) / 2, true
	case before != nil:
		return before.score, true
	case after != nil:
		return after.score, true
	}
	return 0, false
}

// standing is how a trial stands before the fresh launches.
type standing struct {
	trial string
	ratio float64 // mean log ratio to the baseline beside each launch
	n     int
}

// standings are the trials that were measured in the given stages and are still
// in, best first.
func (n *Night) standings(stages ...Stage) []standing {
	var all []standing
	for _, t := range n.plan.Trials[1:] {
		if _, out := n.skipped(t.ID); out {
			continue
		}
		s := standing{trial: t.ID}
		for _, l := range n.samples(t.ID, stages...) {
			if b, ok := n.beside(l.launch); ok {
				s.ratio += l.score - b
				s.n++
			}
		}
		if s.n > 0 {
			s.ratio /= float64(s.n)
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b standing) int { return cmp.Compare(b.ratio, a.ratio) })
	return all
}
