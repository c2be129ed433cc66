package tune

import (
	"testing"
	"time"
)

// What the morning takes is kept free from the start: of the baseline, and where
// a winner is to serve, of the winner before it.
func TestReserve(t *testing.T) {
	for promote, want := range map[string]time.Duration{
		PromoteAsk:   7*time.Minute + 30*time.Second + time.Minute,
		PromoteServe: 7*time.Minute + 30*time.Second + 2*time.Minute + 30*time.Second + time.Minute + 7*time.Minute + 30*time.Second + time.Minute,
	} {
		a := newActor(t)
		a.study.Promote = promote
		a.study.Axes["--a"] = axisOf(1)
		a.plan()
		if got := a.n.reserve(); got != want {
			t.Errorf("promote = %s: %s are kept, want %s", promote, got, want)
		}
		if got := a.n.Deadline().Sub(a.n.trialsEnd()); got != want {
			t.Errorf("promote = %s: the trials end %s before the deadline, want %s", promote, got, want)
		}
	}
}

// A warm-up has its own time, and is not what a point takes.
func TestSoakTakesItsOwnTime(t *testing.T) {
	a := newActor(t)
	a.study.Gate.Soak = 5 * time.Minute
	a.study.Axes["--a"] = axisOf(1)
	a.plan()
	if _, err := a.ready(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		soak        bool
		until, took time.Duration
	}{{true, 5 * time.Minute, 4 * time.Minute}, {false, 30 * time.Minute, 3 * time.Minute}} {
		do, ok := a.n.Next(a.now).(Measure)
		if !ok || do.Point.Soak != c.soak || do.Until.Sub(a.now) != c.until {
			t.Fatalf("it asks for %+v, want until %s", a.n.Next(a.now), a.now.Add(c.until))
		}
		a.write(Measuring{do.Launch, do.Point})
		a.now = a.now.Add(c.took)
		m := flat(100)(do.Point)
		m.Launch, m.Point, m.Took = do.Launch, do.Point, c.took
		a.write(m)
		if c.soak {
			a.write(Flushed{Launch: do.Launch, OK: true})
		}
	}
	if got := a.n.expect(BaselineID).Load; got != 225*time.Second {
		t.Errorf("a point is expected to take %s", got)
	}
}

// A trial that starts slowly is expected to do so again; another one, that was
// never started, as slowly as any. The first start of several does not count, nor one
// with empty caches: it may have compiled what the next ones found.
func TestPace(t *testing.T) {
	var n Night
	n.plan.Expect = Estimate{Start: time.Minute, Load: time.Minute, Release: time.Minute}
	if e := n.expect("a"); e.Start != 75*time.Second || e.Load != 75*time.Second || e.Release != time.Minute {
		t.Errorf("before anything is seen: %+v", e)
	}
	n.pace.started("a", 2*time.Minute, false)
	n.pace.started("b", 8*time.Minute, false)
	expect := func(when string, all map[string]time.Duration) {
		for trial, want := range all {
			if got := n.expect(trial).Start; got != want {
				t.Errorf("%s: %s is expected to start in %s, want %s", when, trial, got, want)
			}
		}
	}
	expect("cold", map[string]time.Duration{"a": 150 * time.Second, "b": 10 * time.Minute, "c": 10 * time.Minute})
	n.pace.started("b", 4*time.Minute, false)
	expect("warm", map[string]time.Duration{"a": 150 * time.Second, "b": 5 * time.Minute, "c": 5 * time.Minute})
	n.pace.started("b", 6*time.Minute, false)
	n.pace.started("b", 5*time.Minute, false)
	n.pace.started("b", 20*time.Minute, true)
	expect("the slowest of the warm ones", map[string]time.Duration{"a": 150 * time.Second, "b": 450 * time.Second, "c": 450 * time.Second})
}
