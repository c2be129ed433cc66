package shim_test

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// A tree that left its session, ignores signals, is stopped, wiped its
// environment, holds the terminal and forks while it is killed leaves nobody.
func TestTortureTreeDies(t *testing.T) {
	bystander := bystander(t)
	runs := 3
	if os.Getenv("SGLAUNCH_LONG") != "" {
		runs = 200
	}
	for range runs {
		r := newRig(t, rigOptions{})
		p := r.supervisor()
		spec := r.spec(1, self(), "wild")
		spec.Env = role("torture")
		p.spawn(spec)
		p.awaitOutput("grown")
		began := time.Now()
		p.kill(1)
		m := awaitEither(p, wire.TreeGone, wire.TreeLeft)
		if m.Type != wire.TreeGone {
			t.Fatalf("left: %+v", m.Procs)
		}
		t.Logf("gone after %v", time.Since(began).Round(time.Millisecond))
		p.await(wire.Drained)
		survivors := 0
		left, err := proc.Descendants(r.pid())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range left {
			if s.PID != p.pid && !s.Dead() {
				t.Errorf("survivor: %d %s %s", s.PID, s.Comm, proc.Command(s))
				survivors++
			}
		}
		p.finish(0)
		r.exit()
		if survivors > 0 {
			break
		}
	}
	if !proc.Alive(bystander) {
		t.Error("a process that is not ours was killed")
	}
}

func awaitEither(p *part, a, b string) (found wire.Message) {
	p.t.Helper()
	p.until(a+" or "+b, func() bool {
		for _, m := range p.messages {
			if m.Type == a || m.Type == b {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func bystander(t *testing.T) proc.ID {
	t.Helper()
	cmd := rawCommand(t.TempDir(), newSink(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := proc.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// kill -9 of the shim: the server's leader dies with it, and the records name
// whoever else has to be ended.
func TestShimDies(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, self(), "tame")
	spec.Env = role("torture")
	server := p.spawn(spec)
	p.awaitOutput("grown")
	eventually.True(t, "the records of the tree", func() bool {
		records, _ := proc.ReadRecords(spec.Records)
		return len(records) > 40
	})
	_ = unix.Kill(r.pid(), unix.SIGKILL)
	eventually.True(t, "the end of the leader", func() bool {
		return !proc.Alive(proc.ID{PID: server.PID, Start: server.Start})
	})
	lastRites(t, spec)
	nobodyLeft(t, p.pid)
}

// What was a child of our process before it became a shim, and what a supervisor
// leaves behind, is not of the attempt.
func TestOthersAreSpared(t *testing.T) {
	r := newRig(t, rigOptions{wrap: []string{"sh", "-c", `sleep 1000 >/dev/null 2>&1 & exec "$0"`}})
	p := r.supervisor()
	hook := startHook(t, p)
	spec := r.spec(1, "sh", "-c", "(setsid sleep 1000 &); echo up; exec sleep 1000")
	p.spawn(spec)
	p.awaitOutput("up")
	var before proc.ID
	eventually.True(t, "the child of before", func() bool {
		below, _ := proc.Descendants(r.pid())
		for _, q := range below {
			if q.PPID == r.pid() && q.Comm == "sleep" && !proc.HasEnv(q.PID, spec.Marker) {
				before = q.ID
			}
		}
		return before.PID != 0
	})
	p.die()
	p = r.supervisor()
	p.kill(1)
	p.await(wire.TreeGone)
	for name, id := range map[string]proc.ID{"the child of before": before, "the hook": hook} {
		if !proc.Alive(id) {
			t.Errorf("%s was killed", name)
		}
	}
	below, _ := proc.Descendants(r.pid())
	for _, q := range below {
		if !q.Dead() && proc.HasEnv(q.PID, spec.Marker) {
			t.Errorf("survivor: %+v", q)
		}
	}
	p.finish(0)
	r.exit()
	_ = proc.Send(before, unix.SIGKILL)
	_ = proc.Send(hook, unix.SIGKILL)
}

// startHook has the supervisor's process start something that leaves it at once.
func startHook(t *testing.T, p *part) proc.ID {
	t.Helper()
	_ = unix.Kill(p.pid, unix.SIGUSR1)
	var hook proc.ID
	eventually.True(t, "the hook", func() bool {
		below, _ := proc.Descendants(p.rig.pid())
		for _, q := range below {
			if q.Comm == "sleep" && q.PPID == p.rig.pid() && proc.HasEnv(q.PID, "SHIM_TEST_HOOK=1") {
				hook = q.ID
			}
		}
		return hook.PID != 0
	})
	return hook
}
