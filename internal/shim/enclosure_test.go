package shim_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// enclosed reports whether a shim of ours may make cgroups.
func enclosed(t *testing.T) bool {
	t.Helper()
	c, err := proc.PlanCgroup("sglaunch-test-" + strconv.Itoa(os.Getpid()))
	if err == nil {
		err = c.Make()
	}
	if err != nil {
		t.Logf("no cgroup is permitted here: %v", err)
	}
	c.Remove()
	return err == nil
}

// noteOf is what stands beside the records of an attempt.
func noteOf(t *testing.T, spec wire.Spec) (c proc.Cgroup) {
	t.Helper()
	text, err := os.ReadFile(spec.Records + ".cgroup")
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Error(err)
	}
	return c
}

// The server stands in a cgroup of its own, alone, which goes with it. Where none
// is permitted the note says why and all else is the same.
func TestServerIsEnclosed(t *testing.T) {
	permitted := enclosed(t)
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, "sh", "-c", "setsid sleep 100 & grep ^0:: /proc/self/cgroup; echo up; exec sleep 100")
	server := p.spawn(spec)
	p.awaitOutput("up")
	note, c := noteOf(t, spec), proc.NotedCgroup(spec.Records)
	if permitted != (c != nil) || permitted == (note.Why != "") {
		t.Fatalf("permitted %v, noted %+v", permitted, note)
	}
	if permitted {
		pids := []int{}
		for _, m := range c.Members() {
			pids = append(pids, m.PID)
		}
		if !slices.Contains(pids, server.PID) || slices.Contains(pids, r.pid()) || slices.Contains(pids, p.pid) || len(pids) != 2 {
			t.Errorf("server %d, shim %d, supervisor %d; in the cgroup: %v", server.PID, r.pid(), p.pid, pids)
		}
		if text := string(p.received()); !strings.Contains(text, "/sglaunch-"+strconv.Itoa(r.pid())+"-") {
			t.Errorf("the server says %q", text)
		}
	}
	p.kill(1)
	p.await(wire.TreeGone)
	if _, err := os.Stat(note.Path); permitted && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup is still there: %v", err)
	}
	absent := r.spec(2, "no-such-command-here")
	p.send(wire.Message{Type: wire.Spawn, Spec: &absent})
	p.await(wire.SpawnFailed)
	left := noteOf(t, absent).Path
	eventually.True(t, "the end of an empty cgroup", func() bool {
		_, err := os.Stat(left)
		return errors.Is(err, os.ErrNotExist)
	})
	p.finish(0)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// kill -9 of the shim: the cgroup finds even those that nobody recorded, that
// left their session, wiped their environment and never stay the same process.
func TestShimDiesAndNobodyWasRecorded(t *testing.T) {
	if !enclosed(t) {
		return
	}
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, self(), "wild")
	spec.Env = role("torture")
	p.spawn(spec)
	p.awaitOutput("grown")
	_ = unix.Kill(r.pid(), unix.SIGKILL)
	r.exit()
	_ = os.Remove(spec.Records)
	spec.Marker = ""
	lastRites(t, spec)
	nobodyLeft(t, p.pid)
	if c := noteOf(t, spec); c.Populated() {
		t.Errorf("%+v is populated", c)
	}
}
