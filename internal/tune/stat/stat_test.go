package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The example of Welch's test in R: t.test(extra ~ group, sleep) has 17.776
// degrees of freedom and the interval -3.3654832 to 0.2054832.
func TestWelch(t *testing.T) {
	a := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	b := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	i := Welch(a, b, 0.95)
	near(t, "low", math.Log(i.Low), -3.3654832, 1e-6)
	near(t, "high", math.Log(i.High), 0.2054832, 1e-6)
	if same := Welch([]float64{1, 1}, []float64{1, 1}, 0.95); same.Low != 1 || same.High != 1 {
		t.Errorf("values without scatter give %v", same)
	}
	if one := Welch([]float64{0.1}, []float64{0, 0}, 0.95); one.Known() || one.Above(0) || one.String() != "+10.5 % (one launch)" {
		t.Errorf("one sample gives %v", one)
	}
	if none := Welch(nil, a, 0.95); none.N != 0 || none.String() != "unknown" {
		t.Errorf("no sample gives %v", none)
	}
}

// sides are launches of two configurations, the first better by truth.
func sides(r *rand.Rand, n int, truth, sd, other float64) (a, b []float64) {
	for range n {
		a, b = append(a, truth+sd*r.NormFloat64()), append(b, other*r.NormFloat64())
	}
	return a, b
}

// An interval of 95 % holds the truth in 95 % of all nights, also where one side
// scatters four times as much as the other.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 5} {
		for _, other := range []float64{0.01, 0.04} {
			const nights = 4000
			held := 0
			for range nights {
				a, b := sides(r, n, 0.05, 0.01, other)
				if i := Welch(a, b, 0.95); i.Low <= math.Exp(0.05) && math.Exp(0.05) <= i.High {
					held++
				}
			}
			near(t, "coverage", float64(held)/nights, 0.96, 0.025)
		}
	}
}

// What Smallest says is seen in four of five nights is seen in about so many.
func TestSmallestIsSeen(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{3, 5, 8} {
		const nights, sd = 4000, 0.01
		truth := math.Log(Smallest(sd, n, 1.02, 0.95, 0.8))
		seen := 0
		for range nights {
			if a, b := sides(r, n, truth, sd, sd); Welch(a, b, 0.95).Above(1.02) {
				seen++
			}
		}
		near(t, "power", float64(seen)/nights, 0.82, 0.04)
	}
	if !math.IsInf(Smallest(0.01, 1, 1, 0.95, 0.8), 1) {
		t.Error("one pair shows something")
	}
}

func TestNoise(t *testing.T) {
	sd, ok := Noise([][]float64{{1, 2, 3}, {5}, {10, 12}})
	near(t, "pooled", sd, math.Sqrt((2+2)/3.0), 1e-9)
	if _, one := Noise([][]float64{{1}, {2}}); !ok || one {
		t.Error("a configuration that was launched once has a scatter")
	}
	// A slope adds little to the scatter of neighbours.
	sd, _ = Stepwise([]float64{0, 0.01, 0, 0.01, 0})
	near(t, "stepwise", sd, 0.01/math.Sqrt2, 1e-9)
	sd, _ = Stepwise([]float64{0, 0.01, 0}, []float64{7}, []float64{5, 5.01, 5})
	near(t, "stepwise over nights", sd, 0.01/math.Sqrt2, 1e-9)
	if _, ok := Stepwise([]float64{1, 2}); ok {
		t.Error("two values have a scatter")
	}
}

func TestTrend(t *testing.T) {
	times := []float64{0, 1, 2, 3, 4, 5}
	change, p := Trend(times, []float64{0, -0.01, -0.019, -0.031, -0.04, -0.05})
	near(t, "change", change, -0.05, 0.001)
	if p > 1e-4 {
		t.Errorf("a plain trend has p %v", p)
	}
	if change, p = Trend(times, []float64{1, 1, 1, 1, 1, 1}); change != 0 || p != 1 {
		t.Errorf("no trend is %v, p %v", change, p)
	}
	if _, p = Trend(times[:3], []float64{1, 2, 3}); p != 1 {
		t.Error("three values have a trend")
	}
	if _, p = Trend([]float64{1, 1, 1, 1}, []float64{1, 2, 3, 4}); p != 1 {
		t.Error("one moment has a trend")
	}
	r, told := rand.New(rand.NewPCG(5, 6)), 0
	const nights = 4000
	for range nights {
		logs := make([]float64, len(times))
		for i := range logs {
			logs[i] = r.NormFloat64()
		}
		if _, p := Trend(times, logs); p < 0.05 {
			told++
		}
	}
	near(t, "false trends", float64(told)/nights, 0.05, 0.015)
}

// A rate and its inverse give inverse answers, whatever the values.
func TestInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-2, 2), 2, 10)
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		there, back := Welch(a, b, 0.9), Welch(b, a, 0.9)
		if math.Abs(math.Log(there.Low)+math.Log(back.High)) > 1e-6 || !(there.Low <= there.Mid && there.Mid <= there.High) {
			t.Errorf("%v and %v", there, back)
		}
	})
}
