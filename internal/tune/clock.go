package tune

import (
	"cmp"
	"time"
)

// A step may take longer than it did so far: what is planned with is slack times
// the slowest of the night.
const slack = 1.25

// expect is what the steps of a launch of the trial take, by what this night
// has seen, else by what the plan expects.
func (n *Night) expect(trial string) Estimate {
	e := n.plan.Expect
	var own, slowest, load time.Duration
	for _, l := range n.launches {
		if l.ready != nil {
			slowest = max(slowest, l.ready.Took)
			if l.Slot.Trial == trial {
				own = max(own, l.ready.Took)
			}
		}
		for _, m := range l.measured {
			load = max(load, m.Took)
		}
	}
	e.Start, e.Load = stretch(cmp.Or(own, slowest, e.Start)), stretch(cmp.Or(load, e.Load))
	return e
}

func stretch(d time.Duration) time.Duration { return time.Duration(float64(d) * slack) }

// cost is what a launch of a trial takes, with all points.
func (n *Night) cost(trial string) time.Duration {
	return n.expect(trial).Launch(len(n.plan.Study.Points()))
}

// reserve is what the morning takes: what is to serve has to start and to prove
// itself, and where that fails the baseline has to start after it.
func (n *Night) reserve() time.Duration {
	e := n.expect(BaselineID)
	last := e.Start + e.Release
	if n.plan.Study.Promote != PromoteServe {
		return last
	}
	start := e.Start
	for id := range n.trials {
		start = max(start, n.expect(id).Start)
	}
	return start + e.Load + e.Release + last
}

// trialsEnd is when the last trial has to be over, and its server gone.
func (n *Night) trialsEnd() time.Time {
	return n.plan.Deadline.Add(-n.reserve())
}

// fits tells whether so much can be over in time.
func (n *Night) fits(now time.Time, d time.Duration) bool {
	return !now.Add(d).After(n.trialsEnd())
}
