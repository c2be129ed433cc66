package machine

import (
	"testing"
	"time"

	"sglaunch/phases"
)

// A view speaks of the wall clock, whatever the machine's own has left out,
// and shares nothing with the machine.
func TestView(t *testing.T) {
	a := newActor(t)
	must(t, a.reach("loading_weights"))
	a.now = a.now.Add(24 * time.Hour) // the host slept
	a.send(Activity{})
	v := a.m.View()
	if v.State != StateStarting || v.Attempt != 1 || v.Phase != phases.LoadingWeights || v.Server == nil || !v.Ready.IsZero() || v.Stop != nil {
		t.Errorf("the view is %+v", v)
	}
	if at, _ := a.m.Deadline(); !v.Deadline.Equal(at) || v.Deadline.Before(a.now) || a.now.Sub(v.Phased) > time.Hour {
		t.Errorf("at %s the phase began %s and the deadline is %s", a.now, v.Phased, v.Deadline)
	}
	a.send(StopAsked{By: "SIGTERM"})
	stopping := a.m.View()
	if v.Stop != nil || stopping.Stop == nil || stopping.Stop.By != "SIGTERM" {
		t.Errorf("stops: %+v, %+v", v.Stop, stopping.Stop)
	}
	must(t, a.end())
	if ended := a.m.View(); ended.State != StateEnded || ended.Server != nil || !ended.Deadline.IsZero() {
		t.Errorf("in the end the view is %+v", ended)
	}
}

// The longest stop is longer than the longest way through the states.
func TestLongestStop(t *testing.T) {
	a := newActor(t)
	a.opt.Stop.Settle = 20 * time.Second
	a.patches = []ActivePatch{{Name: "p"}}
	must(t, a.reach("up"))
	a.send(StopAsked{By: "SIGTERM"})
	begun := a.now
	for a.m.State() != StateEnded { // nobody ever answers in time
		if a.m.State() == StateKilling {
			a.send(TreeGone{})
		}
		must(t, a.tick())
	}
	if took, most := a.now.Sub(begun), a.opt.LongestStop(); took > most {
		t.Errorf("a stop took %s, more than %s", took, most)
	}
}
