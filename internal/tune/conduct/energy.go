package conduct

import (
	"slices"
	"time"

	"sglaunch/internal/gpu"
)

// counted is what the energy counters of the GPUs show together at a moment.
type counted struct {
	at time.Time
	mj int64
}

// count takes the counters' reading. It is none where one of them is not known:
// a part of the GPUs is not what the server uses.
func (w *window) count(at time.Time, gpus []gpu.GPU) {
	sum := int64(0)
	for _, g := range gpus {
		if !g.EnergyMJ.Known {
			return
		}
		sum += g.EnergyMJ.Value
	}
	w.counted = append(w.counted, counted{at, sum})
}

// joules is what the GPUs used in the last seconds before an end, which are those
// in which a client had requests under way: before them it starts, for half a
// minute at times. It is 0 where the counters do not tell, or speak of less than
// half of the time. The window takes no more samples by then.
func (w *window) joules(seconds float64, end time.Time) float64 {
	from := end.Add(-time.Duration(seconds * float64(time.Second)))
	if seconds <= 0 || from.Before(w.began) {
		from = w.began
	}
	inside := slices.DeleteFunc(slices.Clone(w.counted), func(c counted) bool { return c.at.Before(from) || c.at.After(end) })
	if len(inside) < 2 {
		return 0
	}
	first, last := inside[0], inside[len(inside)-1]
	span, used := last.at.Sub(first.at), last.mj-first.mj
	if used < 0 || span < end.Sub(from)/2 { // a counter begins anew with its driver
		return 0
	}
	return float64(used) / 1000 * float64(end.Sub(from)) / float64(span)
}
