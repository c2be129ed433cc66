package report

import (
	"fmt"
	"math"

	"sglaunch/internal/tune"
)

// perThousand heads what the GPUs used for a thousand tokens of answers.
const perThousand = "J/1000 tokens"

// metered tells whether the energy of some run is known.
func metered(s tune.Summary) bool {
	for _, l := range s.Launches {
		for _, m := range l.Measured {
			if m.PerThousand() > 0 {
				return true
			}
		}
	}
	return false
}

// energy is what a trial used for a thousand tokens, at the point at which each of
// its launches that count gave most, and the change against the baseline; "" where
// it is unknown.
func energy(s tune.Summary, trial string) string {
	mine, base := spent(s, trial), spent(s, tune.BaselineID)
	switch {
	case mine == 0:
		return ""
	case base == 0 || trial == tune.BaselineID:
		return figureText(mine)
	}
	return fmt.Sprintf("%s (%s)", figureText(mine), percent(mine/base))
}

// spent is the mean over the launches of a trial that count; 0 where it is
// unknown.
func spent(s tune.Summary, trial string) float64 {
	sum, n := 0.0, 0
	for _, l := range s.Launches {
		if !l.Counts || l.Trial.ID != trial {
			continue
		}
		joules, most := 0.0, 0.0
		for _, m := range l.Measured {
			if rate := m.Result.Metrics["output_throughput"]; rate > most && !m.Point.Soak && !m.Point.Probe && counts(s, m) {
				joules, most = m.PerThousand(), rate
			}
		}
		if joules > 0 {
			sum, n = sum+joules, n+1
		}
	}
	return sum / float64(max(1, n))
}

// unlike is by how much of the time the power limit may hold a trial back more,
// or less, than the baseline, before it is said.
const unlike = 0.1

// heldBack says where the power limit held a trial's GPUs back for more of the
// time, or less, than the baseline's; "" = it did not.
func heldBack(s tune.Summary, t tune.TrialSummary) string {
	share := func(w tune.Window) (float64, bool) { return w.PowerCap, true }
	mine, base := watched(s, t.ID, share), watched(s, tune.BaselineID, share)
	if d := mine - base; d < unlike && d > -unlike {
		return ""
	}
	return fmt.Sprintf("the power limit held its GPUs back for %.0f %% of the time, the baseline's for %.0f %%", 100*mine, 100*base)
}

// leeway is by how much, in watts, the power limits of a trial may differ from the
// baseline's before it is said: a driver rounds.
const leeway = 1

// limited flags a trial whose GPUs were allowed another power than the baseline's:
// the difference may be that of the limits. "" = they were not.
func limited(s tune.Summary, t tune.TrialSummary) string {
	limit := func(w tune.Window) (float64, bool) { return w.LimitWatts, w.LimitWatts > 0 }
	mine, base := watched(s, t.ID, limit), watched(s, tune.BaselineID, limit)
	if mine == 0 || base == 0 || math.Abs(mine-base) <= leeway {
		return ""
	}
	return fmt.Sprintf("not comparable: its GPUs were allowed %.0f W, the baseline's %.0f W", mine, base)
}

// watched is the mean of a figure, where it is known, over the windows of a
// trial's launches that count.
func watched(s tune.Summary, trial string, of func(tune.Window) (x float64, known bool)) float64 {
	sum, n := 0.0, 0
	for _, l := range s.Launches {
		for _, m := range l.Measured {
			if x, known := of(m.Window); known && l.Counts && l.Trial.ID == trial && !m.Point.Soak {
				sum, n = sum+x, n+1
			}
		}
	}
	return sum / float64(max(1, n))
}
