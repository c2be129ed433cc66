package shim_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// kill -9 at any moment: of the supervisor, which the server does not notice; of
// the shim, after which records, marker and cgroup name whoever has to be ended.
// Either way nobody is left, though where there is no cgroup the shim's death
// would leave those that nobody recorded and that show no sign.
func TestDeathAtRandomMoments(t *testing.T) {
	runs := 8
	if os.Getenv("SGLAUNCH_LONG") != "" {
		runs = 1000
	}
	tree := "tame"
	if enclosed(t) {
		tree = "wild"
	}
	for i := range runs {
		moment := time.Duration(rand.Int64N(int64(300 * time.Millisecond)))
		died := dieAt(t, tree, moment, i%2 == 0)
		if t.Failed() {
			t.Fatalf("run %d: the %s died after %v", i, died, moment)
		}
	}
}

func dieAt(t *testing.T, tree string, moment time.Duration, shimDies bool) string {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, self(), tree)
	spec.Env = role("torture")
	p.send(wire.Message{Type: wire.Spawn, Spec: &spec})
	p.send(wire.Message{Type: wire.Stream, Attempt: 1})
	time.Sleep(moment) // the moment is the point
	if shimDies {
		_ = unix.Kill(r.pid(), unix.SIGKILL)
		r.exit()
		lastRites(t, spec)
		nobodyLeft(t, p.pid)
		return "shim"
	}
	p.die()
	q := r.supervisor()
	if s := q.hello.Server; s != nil && !proc.Alive(proc.ID{PID: s.PID, Start: s.Start}) {
		t.Error("the server died of its supervisor")
	}
	q.kill(1)
	awaitEither(q, wire.TreeGone, wire.TreeLeft)
	nobodyLeft(t, q.pid)
	q.finish(0)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	return "supervisor"
}

// lastRites ends what a dead shim left, as the supervisor does.
func lastRites(t *testing.T, spec wire.Spec) {
	t.Helper()
	records, err := proc.ReadRecords(spec.Records)
	if err != nil {
		t.Error(err)
	}
	m := proc.MembershipOf(records, spec.Marker, true)
	m.Cgroup = proc.NotedCgroup(spec.Records)
	ctx, cancel := contextFor(20 * time.Second)
	defer cancel()
	if gone, left := proc.KillAll(ctx, m); !gone {
		t.Errorf("left: %+v", left)
	}
}

// nobodyLeft looks for this binary as a server: nobody but the tests and their
// supervisors may run it.
func nobodyLeft(t *testing.T, supervisor int) {
	t.Helper()
	table, err := proc.Look()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range table {
		args, mine := strings.CutPrefix(proc.Command(q), self()+" ")
		if mine && !q.Dead() && q.PID != os.Getpid() && q.PID != supervisor && !strings.HasPrefix(args, "-test.") {
			t.Errorf("survivor: %d %s", q.PID, args)
		}
	}
}
