package tune

import (
	"slices"
	"time"
)

// step is what a stage of the night wants next: a launch, a note, or, where done
// is set, nothing more.
type step struct {
	slot Slot
	why  string
	note Body
	done bool
}

var stageDone = step{done: true}

// schedule is the next step of the trials.
func (n *Night) schedule(now time.Time) step {
	for _, stage := range []func(time.Time) step{n.screen, n.narrow, n.confirm} {
		if s := stage(now); !s.done {
			return s
		}
	}
	return stageDone
}

// screen launches every trial once, the least risky first.
func (n *Night) screen(now time.Time) step {
	next, more := n.unmeasured()
	switch {
	case len(n.samples(BaselineID, Screen)) == 0 && n.fits(now, n.cost(BaselineID)):
		return n.slot(Screen, BaselineID, "the baseline comes first")
	case more && !n.fits(now, n.cost(next.ID)+n.cost(BaselineID)+n.confirmCost()):
		return step{note: n.noTime(next.ID, "no time was left for it: the fresh launches of the best and the morning need the rest")}
	case more && n.baselineDue(now):
		return n.slot(Screen, BaselineID, "the baseline again")
	case more:
		return n.slot(Screen, next.ID, "not measured yet")
	case n.sinceBaseline(Screen) > 0 && n.fits(now, n.cost(BaselineID)):
		return n.slot(Screen, BaselineID, "the baseline closes the screening")
	}
	return stageDone
}

// narrow launches the best third twice more, where the search is halving.
func (n *Night) narrow(now time.Time) step {
	third := n.standings(Screen)
	third = third[:(len(third)+2)/3]
	if n.plan.Study.Search != Halving || len(third) <= n.plan.Study.Finalists || len(n.confirmed(BaselineID)) > 0 {
		return stageDone
	}
	const rounds = 2
	fewest := slices.MinFunc(third, func(a, b standing) int {
		return len(n.samples(a.trial, Narrow)) - len(n.samples(b.trial, Narrow))
	})
	more := len(n.samples(fewest.trial, Narrow)) < rounds && n.fits(now, n.cost(fewest.trial)+n.cost(BaselineID)+n.confirmCost())
	switch {
	case more && n.baselineDue(now):
		return n.slot(Narrow, BaselineID, "the baseline again")
	case more:
		return n.slot(Narrow, fewest.trial, "among the best third")
	case n.sinceBaseline(Narrow) > 0 && n.fits(now, n.cost(BaselineID)):
		return n.slot(Narrow, BaselineID, "the baseline closes the round")
	}
	return stageDone
}

// slot is the next launch of a trial in a stage.
func (n *Night) slot(stage Stage, trial, why string) step {
	return step{slot: Slot{stage, trial, len(n.samples(trial, stage)) + 1}, why: why}
}

// unmeasured is the next trial that has no launch in the screening that counts.
func (n *Night) unmeasured() (t Trial, more bool) {
	for _, t := range n.plan.Trials[1:] {
		if _, out := n.skipped(t.ID); !out && len(n.samples(t.ID, Screen)) == 0 {
			return t, true
		}
	}
	return Trial{}, false
}

func (n *Night) noTime(trial, why string) Skipped {
	return Skipped{Trial: trial, Rule: "no-time", Text: why}
}

// baselineDue tells that enough trials, or enough time, lie behind the last
// launch of the baseline.
func (n *Night) baselineDue(now time.Time) bool {
	all := n.samples(BaselineID, Screen, Narrow)
	if len(all) == 0 {
		return true
	}
	b, since := n.plan.Study.Baseline, n.sinceBaseline(Screen, Narrow)
	return since >= b.Every || since > 0 && now.Sub(all[len(all)-1].endedAt) >= b.Within
}

// sinceBaseline counts the launches of stages before the fresh ones that count
// and have no baseline after them yet.
func (n *Night) sinceBaseline(stages ...Stage) int {
	last := 0
	if all := n.samples(BaselineID, Screen, Narrow); len(all) > 0 {
		last = all[len(all)-1].Launch
	}
	since := 0
	for _, t := range n.plan.Trials[1:] {
		for _, s := range n.samples(t.ID, stages...) {
			if s.Launch > last {
				since++
			}
		}
	}
	return since
}

// confirmCost is what the fresh launches of one finalist take, be it the slowest
// of all, each beside one of the baseline.
func (n *Night) confirmCost() time.Duration {
	points := len(n.plan.Study.Points())
	return time.Duration(n.plan.Study.Repeats) * (n.slowest().Launch(points) + n.answering() + n.cost(BaselineID))
}
