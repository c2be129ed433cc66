package tune

import (
	"math"
	"testing"
)

// A launch is compared with the baseline right before it and right after it, not
// with those further away.
func TestBeside(t *testing.T) {
	a := newActor(t)
	a.study.Axes["--a"] = axisOf(3)
	a.study.Baseline.Every = 1
	a.plan()
	for _, rate := range []float64{100, 110, 102, 110, 104, 110, 106} {
		if err := a.serve(flat(rate)); err != nil {
			t.Fatal(err)
		}
	}
	s := a.n.Summary()
	for i, want := range map[int]float64{
		1: 110 / math.Sqrt(100*102), 3: 110 / math.Sqrt(102*104), 5: 110 / math.Sqrt(104*106), 0: 100.0 / 102, 6: 106.0 / 104,
	} {
		if got := s.Launches[i].Ratio; math.Abs(got-want) > 1e-9 {
			t.Errorf("launch %d (%s) is at %v of the baseline, want %v", i+1, s.Launches[i].Trial.Name, got, want)
		}
	}
}

// A fresh launch is compared with the fresh launches of the baseline, not with
// those that the finalists were chosen by.
func TestBesideAFreshLaunch(t *testing.T) {
	a := newActor(t)
	a.study.Axes["--a"] = axisOf(1)
	a.plan()
	for _, rate := range []float64{100, 120, 100, 110, 121} {
		if err := a.serve(flat(rate)); err != nil {
			t.Fatal(err)
		}
	}
	fresh := a.n.Summary().Launches[4]
	if want := 121.0 / 110; math.Abs(fresh.Ratio-want) > 1e-9 {
		t.Errorf("launch 5 (%s) is at %v of the baseline, want %v", fresh.Trial.Name, fresh.Ratio, want)
	}
}

// Riskier trials come later: new code, then kernels, then more memory than the
// base has, or a value of which nobody knows whether it is more.
func TestRisk(t *testing.T) {
	base := map[string]Value{"--mem-fraction-static": TextValue("0.88"), "--cpu-offload-gb": TextValue("8"), "--chunked-prefill-size": TextValue("auto")}
	tests := []struct {
		axis, value string
		want        int
	}{
		{"patches", "mine", 3},
		{"--attention-backend", "fa3", 2},
		{"--mem-fraction-static", "0.9", 1},
		{"--mem-fraction-static", "0.8", 0},
		{"--cpu-offload-gb", "4", 1},
		{"--cpu-offload-gb", "16", 0},
		{"--chunked-prefill-size", "4096", 1}, // than what?
		{"--max-running-requests", "64", 1},   // the base does not say
		{"--x", "1", 0},
	}
	for _, tt := range tests {
		if got := DefaultStudy().risk(texts(map[string]string{tt.axis: tt.value}), base); got != tt.want {
			t.Errorf("%s %s has risk %d, want %d", tt.axis, tt.value, got, tt.want)
		}
	}
}
