package conduct

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// What a night measured tells the next plan how far launches scatter here, by
// this metric alone; a state directory that holds nothing tells nothing.
func TestNoiseIsRemembered(t *testing.T) {
	study := smallStudy(nil)
	var records []tune.Record
	synctest.Test(t, func(t *testing.T) {
		_, records = night(t, study, func(w *world) { w.noise = rand.New(rand.NewPCG(1, 2)) })
	})
	n, err := tune.Fold(records)
	if err != nil {
		t.Fatal(err)
	}
	y := newYard(t)
	y.study, y.state = study, statedir.Dir{State: t.TempDir(), Runtime: t.TempDir()}
	if sd := y.noise(t.Context()); sd != 0 {
		t.Errorf("nothing was measured here, and launches scatter by %v", sd)
	}
	y.remember(t.Context(), n)
	y.remember(t.Context(), n) // a tuner that comes back
	var logs []float64
	for _, l := range n.Summary().Launches {
		if l.Counts && l.Trial.Baseline() {
			logs = append(logs, math.Log(l.Value))
		}
	}
	want := 0.0
	for i := 1; i < len(logs); i++ {
		want += math.Pow(logs[i]-logs[i-1], 2) / float64(2*(len(logs)-1))
	}
	if sd := y.noise(t.Context()); math.Abs(sd-math.Sqrt(want)) > 1e-9 || sd == 0 {
		t.Errorf("launches scatter by %v, want %v", sd, math.Sqrt(want))
	}
	if y.study.Objective.Metric = "p99_ttft_ms"; y.noise(t.Context()) != 0 {
		t.Error("another metric has the same scatter")
	}
}
