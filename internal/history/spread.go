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
		off[i] = apart(v, mid)
	}
	slices.Sort(off)
	// 1.4826 makes the median distance comparable to a standard deviation.
	far := 3 * max(1.4826*quantile(off, 0.5), leastNoise)
	usual := slices.DeleteFunc(sorted, func(v float64) bool { return apart(v, mid) > far })
	return Range{toDuration(quantile(usual, 0.1)), toDuration(quantile(usual, 0.5)), toDuration(quantile(usual, 0.9))}
}

// leastNoise keeps ordinary noise of nearly equal starts, a twentieth.
const leastNoise = 0.05

// apart is the distance of two times as a factor, since starts are slow and
// fast by factors; below a second there is only noise.
func apart(a, b float64) float64 { return math.Abs(math.Log((a + 1) / (b + 1))) }

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
