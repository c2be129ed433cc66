package tune

import (
	"slices"
	"time"

	"sglaunch/internal/tune/bench"
)

// play plays the night as if every step took what is expected, and every trial
// were as good as the baseline.
func (p *Plan) play() error {
	n, now := &Night{}, p.Now
	write := func(b Body) error { return n.Add(Record{n.Seq(), now, b}) }
	if err := write(p.Planned); err != nil {
		return err
	}
	for {
		var err error
		switch do := n.Next(now).(type) {
		case Note:
			err = write(do.Body)
		case Settle:
			now = now.Add(p.Expect.Release)
			err = write(Settled{After: do.After, OK: true})
		case Launch:
			p.Launches = append(p.Launches, PlannedLaunch{N: do.Intended.Launch, Slot: do.Slot, Begin: now})
			err = write(do.Intended)
			now = now.Add(p.Expect.Start)
			if err == nil {
				err = write(Ready{Launch: do.Intended.Launch, Took: p.Expect.Start, Patches: p.proven(do.Slot.Trial)})
			}
		case Ask:
			err = write(Answered{Launch: do.Launch})
		case Flush:
			err = write(Flushed{Launch: do.Launch, OK: true})
		case Measure:
			took := p.Expect.Load
			if do.Point.Soak {
				took = p.Study.Gate.Soak
			}
			now = now.Add(took)
			err = write(Measured{Launch: do.Launch, Point: do.Point, Took: took, Result: p.even(do.Point)})
		case Stop:
			p.Launches[len(p.Launches)-1].End = now
			err = write(Ended{Launch: do.Launch, Outcome: "stopped"})
		case HandOver:
			p.Launches[len(p.Launches)-1].End = now
			err = write(Serving(do))
		case Wait:
			now = do.Until
		case End:
			p.sum(n, now)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// proven are the patches of a trial, as if each had been proven.
func (p *Plan) proven(trial string) map[string]string {
	proven := map[string]string{}
	i := slices.IndexFunc(p.Trials, func(t Trial) bool { return t.ID == trial })
	names, _ := p.Trials[i].Patches()
	for _, name := range names {
		proven[name] = "effective"
	}
	return proven
}

// even is a result that is the same for every trial, keeps every constraint, and
// grows with the concurrency.
func (p *Plan) even(point Point) bench.Result {
	r := bench.Result{Completed: 1, Metrics: map[string]float64{p.Study.Objective.Metric: float64(point.Concurrency)}}
	for _, c := range p.Study.Constraints {
		if _, taken := r.Metrics[c.Metric]; !taken || c.Max != 0 {
			r.Metrics[c.Metric] = max(c.Max, c.Min)
		}
	}
	return r
}

// sum counts what the played night came to.
func (p *Plan) sum(n *Night, now time.Time) {
	p.Ends = now
	for _, t := range p.Trials[1:] {
		if len(n.samples(t.ID, Screen)) > 0 {
			p.Arms++
		} else {
			p.Untried = append(p.Untried, t.ID)
		}
		p.Pairs = max(p.Pairs, n.paired(t.ID))
	}
}
