package history

import (
	"fmt"
	"slices"
	"time"

	"sglaunch/phases"
)

const (
	driftStarts = 10  // "the last ten"
	driftEnough = 5   // of them before a comparison is worth a word
	driftFactor = 1.5 // below that nobody would act
	driftLeast  = 10 * time.Second
)

// Drift says that a phase is slower than it was.
type Drift struct {
	Phase   phases.Phase
	Factor  float64       // of the usual time
	Usual   time.Duration // of the last starts
	Samples int
}

// Drift compares the time that a phase took, or has taken so far, with the
// last starts like this one. ok is false where that is unremarkable or unknown.
func (p Past) Drift(phase phases.Phase, took time.Duration) (d Drift, ok bool) {
	seconds, _ := p.took(phase)
	seconds = seconds[:min(len(seconds), driftStarts)]
	if len(seconds) < driftEnough {
		return Drift{}, false
	}
	usual := spread(seconds)
	if usual.Mid <= 0 || took <= usual.High || took-usual.Mid < driftLeast {
		return Drift{}, false
	}
	d = Drift{Phase: phase, Factor: took.Seconds() / usual.Mid.Seconds(), Usual: usual.Mid, Samples: len(seconds)}
	return d, d.Factor >= driftFactor
}

func (d Drift) String() string {
	where := "on this machine"
	if d.Phase == phases.LoadingWeights {
		where = "on this disk"
	}
	return fmt.Sprintf("%.1f x slower than the last %d %s (%s)", d.Factor, d.Samples, where, about(d.Usual))
}

// Limit bounds a phase. Quiet is the time without any movement, Timeout the
// time of the whole phase.
type Limit struct {
	Quiet, Timeout time.Duration
}

const (
	// limitFactor is how much longer than the longest good start one may take.
	limitFactor = 1.5
	// limitMost bounds what history may teach, in floors: a start that hung
	// for a day and came to must not make the next hang last as long.
	limitMost = 4
)

// Limits raises the given floors to what good starts of this machine, model
// and flags took, whatever the temperature of their caches: a warm past must
// not make a cold start look stuck. No limit is ever below its floor.
func (p Past) Limits(floors map[phases.Phase]Limit) map[phases.Phase]Limit {
	limits := make(map[phases.Phase]Limit, len(floors))
	for phase, floor := range floors {
		var took, quiet []time.Duration
		for _, s := range p.starts {
			if span, ok := s.spans[phase]; ok {
				took, quiet = append(took, span.Took), append(quiet, span.Quiet)
			}
		}
		limits[phase] = Limit{Quiet: raised(floor.Quiet, quiet), Timeout: raised(floor.Timeout, took)}
	}
	return limits
}

func raised(floor time.Duration, seen []time.Duration) time.Duration {
	if len(seen) < enough {
		return floor
	}
	learned := toDuration(limitFactor * slices.Max(seen).Seconds())
	return max(floor, min(learned, limitMost*floor))
}
