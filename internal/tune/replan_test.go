package tune

import (
	"strings"
	"testing"
	"time"

	"sglaunch/internal/tune/bench"
)

// The deadline is that of the first plan, whatever the study says later.
func TestTheDeadlineStays(t *testing.T) {
	a := newActor(t)
	a.study.Axes["--a"] = axisOf(1)
	a.plan()
	first := a.n.Deadline()
	a.kill()
	a.study.Deadline = Deadline{In: 99 * time.Hour}
	a.plan()
	if got := a.n.Deadline(); !got.Equal(first) {
		t.Errorf("it moved from %s to %s", first, got)
	}
}

// A person's stop ends a trial that is under way.
func TestAStopEndsATrial(t *testing.T) {
	a := newActor(t)
	a.study.Axes["--a"] = axisOf(1)
	a.plan()
	if _, err := a.begin(); err != nil {
		t.Fatal(err)
	}
	a.write(StopAsked{By: "a person"})
	if _, ok := a.n.Next(a.now).(Stop); !ok {
		t.Errorf("it asks for %+v", a.n.Next(a.now))
	}
}

// A client that does not give the objective makes no candidate.
func TestNoObjective(t *testing.T) {
	a := newActor(t)
	a.study.Axes["--a"] = axisOf(1)
	a.plan()
	if err := a.serve(func(Point) Measured { return Measured{Result: bench.Result{Completed: 9}} }); err != nil {
		t.Fatal(err)
	}
	if o := a.n.outcome(a.n.launches[0]); o.status != refused || !strings.Contains(o.why, "chat@32 gives no output_throughput") {
		t.Errorf("it amounts to %+v", o)
	}
}
