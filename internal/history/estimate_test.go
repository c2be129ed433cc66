package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sglaunch/phases"
)

// past makes starts of one phase, newest first.
func past(k Key, phase phases.Phase, took ...time.Duration) Past {
	p := Past{key: k}
	for _, d := range took {
		p.add(Attempt{Key: k, Ready: day}, []Span{{Phase: phase, Took: d, Complete: true}})
	}
	return p
}

func minutes(list ...float64) []time.Duration {
	var all []time.Duration
	for _, m := range list {
		all = append(all, time.Duration(m*float64(time.Minute)))
	}
	return all
}

const weights = phases.LoadingWeights

func TestEstimateSaysItAsAPersonWould(t *testing.T) {
	night := minutes(14, 15, 15.5, 16, 17)
	for _, test := range []struct {
		past     []time.Duration
		progress Progress
		elapsed  time.Duration
		want     string
	}{
		{night, Progress{41, 83}, 7*time.Minute + 30*time.Second, "about 8 min left, usually 14 to 17 min here"},
		{night, Progress{}, 10 * time.Minute, "about 6 min left, usually 14 to 17 min here"},
		{night, Progress{}, 20 * time.Minute, "longer than usual, which is 14 to 17 min here"},
		{night, Progress{41, 83}, 20 * time.Minute, "about 20 min left, usually 14 to 17 min here"},
		{night, Progress{83, 83}, 15 * time.Minute, "nearly done, usually 14 to 17 min here"},
		{nil, Progress{41, 82}, 7 * time.Minute, "about 7 min left at this pace"},
		{nil, Progress{1, 83}, 7 * time.Minute, "unknown"},
		{nil, Progress{}, 7 * time.Minute, "unknown"},
		{minutes(14, 15), Progress{}, 7 * time.Minute, "unknown"},
		{nil, Progress{90, 83}, 7 * time.Minute, "unknown"},
		{nil, Progress{-1, -1}, 7 * time.Minute, "unknown"},
		{minutes(0.5, 0.5, 0.5), Progress{}, 0, "about 30 s left, usually 30 s here"},
		{minutes(1, 1.3, 1.6), Progress{}, 0, "about 78 s left, usually 64 s to 2 min here"},
		{minutes(120, 125, 130), Progress{}, time.Hour, "about 65 min left, usually 2.0 to 2.1 h here"},
	} {
		got := "unknown"
		if e, ok := past(key, weights, test.past...).Estimate(weights, test.progress, test.elapsed); ok {
			got = e.String()
		}
		if got != test.want {
			t.Errorf("after %v at %v of starts %v:\ngot  %s\nwant %s", test.elapsed, test.progress, test.past, got, test.want)
		}
	}
}

func TestColdAndWarmStartsAreNeverAveraged(t *testing.T) {
	cold, warm := key, key
	cold.Caches.Pages, warm.Caches.Pages = Cold, Warm
	p := Past{key: cold}
	for range 5 {
		p.add(Attempt{Key: warm}, []Span{{Phase: weights, Took: time.Minute, Complete: true}, {Phase: phases.GraphCapture, Took: time.Minute}})
	}
	if e, ok := p.Estimate(weights, Progress{}, 0); ok {
		t.Errorf("a cold load was estimated from warm ones: %v", e)
	}
	// Kernels do not care for the page cache.
	if _, ok := p.Estimate(phases.GraphCapture, Progress{}, 0); !ok {
		t.Error("a graph capture was not estimated")
	}
	for range 3 {
		p.add(Attempt{Key: cold}, []Span{{Phase: weights, Took: 10 * time.Minute, Complete: true}})
	}
	if e, _ := p.Estimate(weights, Progress{}, 0); e.Left != 10*time.Minute || e.Samples != 3 {
		t.Errorf("got %+v", e)
	}
}

func TestOtherVersionsSpeakWhereOursIsNew(t *testing.T) {
	p := past(key, weights, minutes(10, 10, 10)...)
	p.key.Version = "0.5.11"
	e, ok := p.Estimate(weights, Progress{}, 0)
	if !ok || e.Left != 10*time.Minute || e.Basis != "by other versions of SGLang" {
		t.Errorf("got %+v, %v", e, ok)
	}
	p.key.Patches = ""
	if e, ok := p.Estimate(weights, Progress{}, 0); ok {
		t.Errorf("a start without the patch was estimated from those with it: %+v", e)
	}
}

func TestReadyAddsWhatUsuallyFollows(t *testing.T) {
	p := Past{key: key}
	for range 4 {
		p.add(Attempt{Key: key, Ready: day}, []Span{
			{Phase: weights, Took: 10 * time.Minute}, {Phase: phases.Autotune, Took: 4 * time.Minute}, {Phase: phases.Warmup, Took: time.Minute},
		})
	}
	// One that crashed says nothing about what follows.
	p.add(Attempt{Key: key}, []Span{{Phase: weights, Took: 10 * time.Minute}})
	for _, test := range []struct {
		phase   phases.Phase
		elapsed time.Duration
		want    string
	}{
		{weights, 3 * time.Minute, "about 12 min left, usually 15 min here"},
		{phases.Autotune, 0, "about 5 min left, usually 15 min here"},
		{phases.Warmup, 30 * time.Second, "about 30 s left, usually 15 min here"},
		{phases.Warmup, 3 * time.Minute, "longer than usual, which is 15 min here"},
		{phases.GraphCapture, 0, "unknown"},
		{phases.Ready, 0, "unknown"},
		{phases.Serving, 0, "unknown"},
	} {
		got := "unknown"
		if e, ok := p.Ready(test.phase, Progress{}, test.elapsed); ok {
			got = e.String()
		}
		if got != test.want {
			t.Errorf("%v after %v:\ngot  %s\nwant %s", test.phase, test.elapsed, got, test.want)
		}
	}
	if _, ok := (Past{}).Ready(weights, Progress{41, 83}, time.Minute); ok {
		t.Error("without history the pace of one phase told when the server is ready")
	}
}

func durations(t *rapid.T, label string, low, high time.Duration, least, most int) []time.Duration {
	one := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, "took"))
	})
	return rapid.SliceOfN(one, least, most).Draw(t, label)
}

// A quarter of absurd starts leaves the estimate within the others.
func TestEstimatesWithstandOutliers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		good := durations(t, "good", 10*time.Minute, 13*time.Minute, 6, 15)
		short := durations(t, "short", 0, 2*time.Minute, 0, len(good)/6)
		long := durations(t, "long", time.Hour, 1000*time.Hour, 0, len(good)/6)
		all := rapid.Permutation(slices.Concat(good, short, long)).Draw(t, "order")
		e, ok := past(key, weights, all...).Estimate(weights, Progress{}, 0)
		if !ok || e.Low < slices.Min(good)-time.Microsecond || e.Low > e.Left || e.Left > e.High || e.High > slices.Max(good)+time.Microsecond {
			t.Fatalf("%v to %v to %v from starts of %v to %v", e.Low, e.Left, e.High, slices.Min(good), slices.Max(good))
		}
	})
}

// Whatever is asked, an estimate is no nonsense.
func TestEstimatesAreNeverAbsurd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := durations(t, "took", 0, 100*time.Hour, 0, 30)
		elapsed := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "elapsed"))
		progress := Progress{rapid.Int64Range(-5, 100).Draw(t, "done"), rapid.Int64Range(-5, 100).Draw(t, "total")}
		e, ok := past(key, weights, took...).Estimate(weights, progress, elapsed)
		switch {
		case !ok && len(took) >= enough:
			t.Fatal("no estimate")
		case !ok:
			return
		case e.Left < 0 || e.Low < 0 || e.High < e.Left || e.Left < e.Low:
			t.Fatalf("%+v", e)
		case e.Overdue && e.Left != 0:
			t.Fatalf("overdue, and yet %v left", e.Left)
		case e.String() == "":
			t.Fatal("nothing to say")
		}
	})
}

// A start like all others that goes on evenly is estimated exactly, at every
// moment, with and without a counter.
func TestEvenStartsAreEstimatedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "whole"))
		n := rapid.IntRange(enough, 30).Draw(t, "starts")
		total := rapid.Int64Range(1, 200).Draw(t, "total")
		done := rapid.Int64Range(0, total).Draw(t, "done")
		counted := rapid.Bool().Draw(t, "counted")
		elapsed := time.Duration(float64(whole) * float64(done) / float64(total))
		progress := Progress{}
		if counted {
			progress = Progress{done, total}
		}
		e, ok := past(key, weights, slices.Repeat([]time.Duration{whole}, n)...).Estimate(weights, progress, elapsed)
		if off := e.Left - (whole - elapsed); !ok || off.Abs() > time.Millisecond {
			t.Fatalf("%v left of %v after %v", e.Left, whole, elapsed)
		}
	})
}

// The slower it goes, the longer it takes; the more is done, the shorter.
func TestEstimatesMoveTheRightWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := past(key, weights, durations(t, "took", time.Minute, time.Hour, 0, 20)...)
		elapsed := time.Duration(rapid.Int64Range(int64(time.Second), int64(2*time.Hour)).Draw(t, "elapsed"))
		total := rapid.Int64Range(20, 200).Draw(t, "total")
		done := rapid.Int64Range(total/10+1, total-1).Draw(t, "done")
		now, ok := p.Estimate(weights, Progress{done, total}, elapsed)
		later, _ := p.Estimate(weights, Progress{done + 1, total}, elapsed)
		if ok && later.Left > now.Left+time.Millisecond {
			t.Fatalf("%v left at %d of %d, %v left one later", now.Left, done, total, later.Left)
		}
	})
}

func TestDrift(t *testing.T) {
	ten := minutes(10, 10, 10, 10, 10, 10.5, 9.5, 10, 10, 10)
	slowNow := slices.Concat(minutes(23, 24), ten)
	for _, test := range []struct {
		phase phases.Phase
		past  []time.Duration
		took  time.Duration
		want  string
	}{
		{weights, ten, 23 * time.Minute, "2.3 x slower than the last 10 on this disk (10 min)"},
		{phases.Autotune, ten, 23 * time.Minute, "2.3 x slower than the last 10 on this machine (10 min)"},
		{weights, slowNow, 23 * time.Minute, "2.3 x slower than the last 10 on this disk (10 min)"},
		{weights, ten, 14 * time.Minute, "-"},
		{weights, ten, time.Minute, "-"},
		{weights, ten[:4], 23 * time.Minute, "-"},
		{weights, minutes(5, 12, 20, 9, 30), 23 * time.Minute, "-"}, // it always varied
		{weights, minutes(0, 0, 0, 0, 0), 23 * time.Minute, "-"},
		{weights, minutes(0.01, 0.01, 0.01, 0.01, 0.01), 5 * time.Second, "-"}, // seconds: nobody waits for them
	} {
		got := "-"
		if d, ok := past(key, test.phase, test.past...).Drift(test.phase, test.took); ok {
			got = d.String()
		}
		if got != test.want {
			t.Errorf("%v after %v: got %q, want %q", test.took, test.past, got, test.want)
		}
	}
}

func TestLimitsOnlyRaise(t *testing.T) {
	floor := map[phases.Phase]Limit{weights: {15 * time.Minute, 4 * time.Hour}}
	rapid.Check(t, func(t *rapid.T) {
		p := Past{key: key}
		for i, took := range durations(t, "took", 0, 100*time.Hour, 0, 30) {
			k := key
			k.Caches.Pages = rapid.SampledFrom([]Warmth{Cold, Warm, WarmthUnknown}).Draw(t, fmt.Sprint("caches", i))
			p.add(Attempt{Key: k}, []Span{{Phase: weights, Took: took, Quiet: took / 3}})
		}
		got := p.Limits(floor)[weights]
		least, most := floor[weights], Limit{4 * 15 * time.Minute, 4 * 4 * time.Hour}
		if got.Quiet < least.Quiet || got.Timeout < least.Timeout || got.Quiet > most.Quiet || got.Timeout > most.Timeout {
			t.Fatalf("%v", got)
		}
	})
}

// A box with a slow disk: five hours cold, two minutes warm.
func TestAWarmPastDoesNotMakeAColdStartLookStuck(t *testing.T) {
	floor := map[phases.Phase]Limit{weights: {15 * time.Minute, 4 * time.Hour}}
	cold := key
	cold.Caches.Pages = Cold
	p := past(key, weights, minutes(2, 2, 2, 2, 2)...)
	if got := p.Limits(floor); got[weights] != floor[weights] {
		t.Errorf("from fast starts: %v", got[weights])
	}
	p.add(Attempt{Key: cold}, []Span{{Phase: weights, Took: 5 * time.Hour, Quiet: 20 * time.Minute}})
	if got, want := p.Limits(floor)[weights], (Limit{30 * time.Minute, 7*time.Hour + 30*time.Minute}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
