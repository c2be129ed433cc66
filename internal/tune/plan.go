package tune

import (
	"time"

	"sglaunch/internal/tune/stat"
)

// Plan is what a night can do before its deadline, and what it can show. It is
// the night itself, played with the times that are expected of it.
type Plan struct {
	Planned
	Now      time.Time
	Launches []PlannedLaunch
	Arms     int       // trials that are measured
	Untried  []string  // IDs of trials that no time is left for
	Pairs    int       // fresh launches of a finalist beside the baseline
	Ends     time.Time // when a server serves
	Noise    float64   // standard deviation of the log score between launches
	Assumed  bool      // nobody has measured the noise here
	Smallest float64   // true gain that so many pairs show in four of five nights; +Inf = none
	Problems []string  // it is refused: these have to be mended first
	Warnings []string
}

// PlannedLaunch is one launch of a plan.
type PlannedLaunch struct {
	N     int
	Slot  Slot
	Begin time.Time
	End   time.Time
}

// Outlook is what a plan needs to know of the machine.
type Outlook struct {
	Now     time.Time
	Zone    *time.Location   // of the deadline
	Base    map[string]Value // see Study.BaseSettings
	Command []string         // of the base
	Env     []string         // that the base's server would get
	Facts   Facts
	Expect  Estimate        // of history; zero parts are taken from the study
	Noise   float64         // of earlier nights; 0 = unknown
	Flags   map[string]bool // that the installed server knows; nil = it could not be asked
	Patches []string        // names that the base has
}

// assumedNoise is what launches of one configuration usually scatter by.
const assumedNoise = 0.01

// power is the share of nights in which the smallest gain has to be seen.
const power = 0.8

// NewPlan plans a night. A plan with Problems must not be begun. The error is
// about the study alone.
func NewPlan(s Study, o Outlook) (Plan, error) {
	trials, err := s.Expand(o.Base, o.Facts)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Now: o.Now, Noise: o.Noise, Planned: Planned{
		Version: RecordVersion, Study: s, Facts: o.Facts, Trials: trials, Base: o.Base,
		Deadline: s.Deadline.After(o.Now, o.Zone), Expect: o.Expect.or(s.Expect),
		Seed: o.Now.UnixMilli(),
	}}
	if p.Noise <= 0 {
		p.Noise, p.Assumed = assumedNoise, true
	}
	if err := p.play(); err != nil {
		return Plan{}, err
	}
	level := 1 - (1-s.Confidence)/float64(max(1, min(s.Finalists, p.Arms)))
	p.Smallest = stat.Smallest(p.Noise, p.Pairs, 1+s.MinimumEffect, level, power)
	p.refuse(o)
	p.warn(o)
	return p, nil
}

// or takes from another estimate what this one does not know.
func (e Estimate) or(other Estimate) Estimate {
	for _, part := range []struct{ mine, others *time.Duration }{
		{&e.Start, &other.Start}, {&e.Load, &other.Load}, {&e.Release, &other.Release},
	} {
		if *part.mine <= 0 {
			*part.mine = *part.others
		}
	}
	return e
}
