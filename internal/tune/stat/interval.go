package stat

import (
	"fmt"
	"math"

	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a ratio with its uncertainty. Fewer than two samples have none:
// Low and High are then zero, and Known is false.
type Interval struct {
	Mid   float64 `json:"mid"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	N     int     `json:"n"`     // samples; of the smaller side where there are two
	Level float64 `json:"level"` // confidence
}

// Known reports whether there is an interval.
func (i Interval) Known() bool { return i.N >= 2 }

// Above reports whether the whole interval is above a ratio.
func (i Interval) Above(ratio float64) bool { return i.Known() && i.Low > ratio }

// String writes the effect in percent: "+5.1 % (+3.9 to +6.3)".
func (i Interval) String() string {
	if i.N == 0 {
		return "unknown"
	}
	if !i.Known() {
		return percent(i.Mid) + " % (one launch)"
	}
	return fmt.Sprintf("%s %% (%s to %s)", percent(i.Mid), percent(i.Low), percent(i.High))
}

func percent(ratio float64) string { return fmt.Sprintf("%+.1f", 100*(ratio-1)) }

// Welch is the ratio of one side to the other, by the logarithms of their values,
// with Student's interval by Welch: neither side is assumed to scatter as the
// other does. Where launches were made side by side its middle is the mean of
// the paired ratios; what drifted between the pairs makes it wider.
func Welch(a, b []float64, level float64) Interval {
	n := min(len(a), len(b))
	if n == 0 {
		return Interval{Level: level}
	}
	ma, va := gonum.MeanVariance(a, nil)
	mb, vb := gonum.MeanVariance(b, nil)
	if n == 1 {
		return Interval{Mid: math.Exp(ma - mb), N: 1, Level: level}
	}
	ea, eb := va/float64(len(a)), vb/float64(len(b))
	freedom := (ea + eb) * (ea + eb) / (ea*ea/float64(len(a)-1) + eb*eb/float64(len(b)-1))
	if math.IsNaN(freedom) { // neither side scatters at all
		freedom = float64(n - 1)
	}
	return interval(ma-mb, math.Sqrt(ea+eb), freedom, n, level)
}

func interval(mid, se, freedom float64, n int, level float64) Interval {
	half := quantile(freedom, (1+level)/2) * se
	return Interval{Mid: math.Exp(mid), Low: math.Exp(mid - half), High: math.Exp(mid + half), N: n, Level: level}
}

// tail is the chance that Student's t is above x.
func tail(freedom, x float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Survival(x)
}

func quantile(freedom, p float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(p)
}

// Smallest is the smallest true ratio that n launches on each side show, with the
// given chance (power), to be above a minimum ratio, where launches of one
// configuration scatter by sd, the standard deviation of the logarithm. It is
// +Inf where n is too small to show anything.
//
// Welch's degrees of freedom are between those of one side and of both; the mean
// of the two bounds, a harmonic one, gives the power that simulated nights have.
func Smallest(sd float64, n int, minimum, level, power float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	freedom := float64(n-1) * 4 / 3
	reach := quantile(freedom, (1+level)/2) + quantile(freedom, power)
	return minimum * math.Exp(reach*sd*math.Sqrt2/math.Sqrt(float64(n)))
}
