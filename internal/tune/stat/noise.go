package stat

import (
	"math"

	gonum "gonum.org/v1/gonum/stat"
)

// Noise is the standard deviation of the logarithm between launches of one
// configuration, pooled over configurations. ok is false where no configuration
// was launched twice.
func Noise(groups [][]float64) (sd float64, ok bool) {
	sum, freedom := 0.0, 0
	for _, logs := range groups {
		if n := len(logs); n >= 2 {
			sum += gonum.Variance(logs, nil) * float64(n-1)
			freedom += n - 1
		}
	}
	if freedom == 0 {
		return 0, false
	}
	return math.Sqrt(sum / float64(freedom)), true
}

// Stepwise is the noise of series that may drift slowly, a night each: from the
// differences of neighbours alone. ok is false where there are fewer than two
// differences.
func Stepwise(series ...[]float64) (sd float64, ok bool) {
	sum, steps := 0.0, 0
	for _, logs := range series {
		for i := 1; i < len(logs); i++ {
			d := logs[i] - logs[i-1]
			sum += d * d
			steps++
		}
	}
	if steps < 2 {
		return 0, false
	}
	return math.Sqrt(sum / float64(2*steps)), true
}

// Trend is what a series changes from its first to its last time along the
// straight line through it, and how likely so much would be by chance (p).
// Fewer than four values, or one moment, show no trend: p is 1.
func Trend(times, logs []float64) (change, p float64) {
	n := len(logs)
	if n < 4 || len(times) != n {
		return 0, 1
	}
	span := times[n-1] - times[0]
	if span <= 0 {
		return 0, 1
	}
	alpha, beta := gonum.LinearRegression(times, logs, nil, false)
	mean := gonum.Mean(times, nil)
	rest, spread := 0.0, 0.0
	for i, x := range times {
		r := logs[i] - alpha - beta*x
		rest += r * r
		spread += (x - mean) * (x - mean)
	}
	freedom := float64(n - 2)
	se := math.Sqrt(rest / freedom / spread)
	if se == 0 {
		if beta == 0 {
			return 0, 1
		}
		return beta * span, 0
	}
	return beta * span, 2 * tail(freedom, math.Abs(beta)/se)
}
