package history

import (
	"math"
	"slices"
	"time"
)

// Range is where values usually lie: eight of ten, outliers left out.
type Range struct {
	Low, Mid, High time.Duration
}

// spread describes values in seconds. Up to a quarter of them may be absurd (a
// suspended machine, a clock set by hand) without moving the range out of the
// others.
func spread(seconds []float64) Range {
	sorted := slices.Sorted(slices.Values(seconds))
	mid := quantile(sorted, 0.5)
	off := make([]float64, len(sorted))
	for i, v := range sorted {
		off[i] = math.Abs(v - mid)
	}
	slices.Sort(off)
	// 1.4826 makes the median deviation comparable to a standard deviation;
	// a twentieth of the median keeps ordinary noise of equal starts.
	far := 3 * max(1.4826*quantile(off, 0.5), mid/20)
	usual := slices.DeleteFunc(sorted, func(v float64) bool { return math.Abs(v-mid) > far })
	return Range{toDuration(quantile(usual, 0.1)), toDuration(quantile(usual, 0.5)), toDuration(quantile(usual, 0.9))}
}

// quantile interpolates between neighbours; sorted is not empty.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func toDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}
