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
