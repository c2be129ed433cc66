package conduct

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/sglangcmd"
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
	y.study = study
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

// A start that had to compile says what one takes only where there is no other.
func TestColdStartsAreNotTheUsual(t *testing.T) {
	y := newYard(t)
	y.base = smallBase
	y.base.Server.Name = "prod"
	db, err := history.Open(t.Context(), y.state.History())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := history.Key{Flags: history.FlagsDigest(sglangcmd.Parse(y.base.Server.Command, y.env, y.folder).Args, y.env)}
	began := time.Date(2026, 2, 19, 22, 0, 0, 0, time.UTC)
	start := func(id string, took time.Duration, jit history.Warmth) {
		t.Helper()
		key.Caches.JIT = jit
		if err := db.RecordLaunch(t.Context(), history.Launch{ID: id, Name: "prod", Began: began}); err != nil {
			t.Fatal(err)
		}
		if err := db.RecordAttempt(t.Context(), id, history.Attempt{N: 1, Key: key, Began: began, Ready: began.Add(took)}); err != nil {
			t.Fatal(err)
		}
	}
	start("20260219T220000.000Z-prod-0001", 40*time.Minute, history.Cold)
	if e := y.expect(t.Context()); e.Start != 40*time.Minute {
		t.Errorf("of a cold start alone it expects %s", e.Start)
	}
	start("20260219T230000.000Z-prod-0002", 5*time.Minute, history.Warm)
	if e := y.expect(t.Context()); e.Start != 5*time.Minute {
		t.Errorf("beside a warm start it expects %s", e.Start)
	}
}
