package tune

import (
	"cmp"
	"time"
)

// A step may take longer than it did so far: what is planned with is slack times
// the slowest of the night.
const slack = 1.25

// pace is what the steps of a launch took at most, in this night.
type pace struct {
	start map[string]starts // by trial
	load  time.Duration     // one point
	asked time.Duration     // the answers of a launch
}

// starts are those of a trial. The first, and one that was given empty caches, may
// have compiled what the next ones find: it speaks only until there is another.
type starts struct {
	warm bool // took is of one that found what it needed
	took time.Duration
}

func (p *pace) started(trial string, took time.Duration, cold bool) {
	if p.start == nil {
		p.start = map[string]starts{}
	}
	s, again := p.start[trial]
	switch warm := again && !cold; {
	case warm && s.warm:
		s.took = max(s.took, took)
	case warm || !s.warm:
		s = starts{warm, took}
	}
	p.start[trial] = s
}

// slowest is the start of the trial that starts most slowly.
func (p *pace) slowest() (most time.Duration) {
	for _, s := range p.start {
		most = max(most, s.took)
	}
	return most
}

// expect is what the steps of a launch of the trial take, by what this night
// has seen, else by what the plan expects.
func (n *Night) expect(trial string) Estimate {
	e := n.plan.Expect
	return Estimate{
		Start:   stretch(cmp.Or(n.pace.start[trial].took, n.pace.slowest(), e.Start)),
		Load:    stretch(cmp.Or(n.pace.load, e.Load)),
		Release: e.Release,
	}
}

// slowest is what the steps of a launch take that starts as slowly as any did.
func (n *Night) slowest() Estimate { return n.expect("") }

func stretch(d time.Duration) time.Duration { return time.Duration(float64(d) * slack) }

// cost is what a launch of a trial takes, with all points.
func (n *Night) cost(trial string) time.Duration {
	return n.expect(trial).Launch(len(n.plan.Study.Points())) + n.answering()
}

// reserve is what the morning takes: what is to serve has to start and to prove
// itself, and where that fails the baseline has to start after it.
func (n *Night) reserve() time.Duration {
	e := n.expect(BaselineID)
	last := e.Start + e.Release
	if n.plan.Study.Promote != PromoteServe {
		return last
	}
	return n.slowest().Start + e.Load + e.Release + last
}

// trialsEnd is when the last trial has to be over, and its server gone.
func (n *Night) trialsEnd() time.Time {
	return n.plan.Deadline.Add(-n.reserve())
}

// fits tells whether so much can be over in time.
func (n *Night) fits(now time.Time, d time.Duration) bool {
	return !now.Add(d).After(n.trialsEnd())
}
