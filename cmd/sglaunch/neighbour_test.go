package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sglaunch/internal/proc"
	"sglaunch/internal/rehearsal"
)

// neighbourhood is a stage whose GPU 1 somebody else may be on.
type neighbourhood struct {
	*rehearsal.Stage
	dir   string
	other int // pid of the neighbour
}

func newNeighbourhood(t *testing.T) *neighbourhood {
	t.Helper()
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	n := &neighbourhood{dir: t.TempDir()}
	if n.Stage, err = rehearsal.Build(filepath.Join(n.dir, "stage"), rehearsal.Options{GPUs: 2, Speed: 60, Shards: 20}); err != nil {
		t.Fatal(err)
	}
	n.Lib = lib
	other := exec.Command("sleep", "100000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	n.other = other.Process.Pid
	return n
}

// set writes the board anew.
func (n *neighbourhood) set(t *testing.T, change func(*rehearsal.GPU)) {
	t.Helper()
	gpus := rehearsal.Machine(2)
	change(&gpus[1])
	if err := (rehearsal.Board{GPUs: gpus}).Write(n.Board); err != nil {
		t.Fatal(err)
	}
}

func (n *neighbourhood) launch(t *testing.T) *launched {
	t.Helper()
	port, err := rehearsal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	toml := filepath.Join(n.dir, "launch.toml")
	if err := os.WriteFile(toml, []byte(story{bare: true}.launchTOML()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "-c", toml, "--"}, n.Command(n.Args(2, port)...)...)
	return startLaunch(t, n.dir, n.Env(), args...)
}

const most = 170 << 30 // of 179 GiB

// A neighbour that leaves no room is named and waited for; when it has gone the
// launch succeeds.
func TestNeighbour(t *testing.T) {
	t.Parallel()
	n := newNeighbourhood(t)
	n.set(t, func(g *rehearsal.GPU) { g.Procs = map[int]uint64{n.other: most} })
	l := n.launch(t)
	l.await(`(?s)oom_weights beside a neighbour: GPU 1: 170 GiB held.*GPU 1 is as full as when the last attempt found no room`)
	n.set(t, func(*rehearsal.GPU) {})
	l.await(readyLine)
	l.signal(syscall.SIGTERM)
	who := `held outside of this container` // there the driver's pids name nobody
	if proc.HostPIDs() {
		who = fmt.Sprintf(`held: 170 GiB by process %d \(sleep 100000, for `, n.other)
	}
	l.check(story{code: exitOK, tells: []string{who, `gpu_memory_held`, `may come back`}}, l.wait())
}

// Memory that no process holds ends the launch with 13.
func TestGhost(t *testing.T) {
	t.Parallel()
	n := newNeighbourhood(t)
	n.set(t, func(g *rehearsal.GPU) { g.Used = most })
	l := n.launch(t)
	check := startLaunch(t, n.dir, n.Env(), append([]string{"check", "--"}, n.Command(n.Args(2, 30000)...)...)...)
	defer func() {
		check.wait()
		if out := check.stdout.bytes(); !bytes.Contains(out, []byte("170 GiB held")) {
			t.Errorf("check says\n%s", out)
		}
	}()
	if !proc.HostPIDs() { // who is a ghost cannot be known
		l.await(`held outside of this container`)
		l.signal(syscall.SIGTERM)
		l.check(story{code: exitOK}, l.wait())
		return
	}
	l.check(story{code: exitHeld, tells: []string{`waiting a moment for the driver`, `gpu_ghost`, `held by nobody who shows himself`}}, l.wait())
}
