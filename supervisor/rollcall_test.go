package supervisor

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// What a scheduler forks bears its title. It may come and go; the scheduler may not.
func TestForkOfARankIsNoRank(t *testing.T) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	rank := exec.Command("/bin/bash")
	rank.Args = []string{"sglang::scheduler_TP3", "-c", "(read x <&3; exit 0) & echo $!; exec 3<&-; wait; read y"}
	rank.ExtraFiles = []*os.File{ours}
	in, err := rank.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := rank.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := rank.Start(); err != nil {
		t.Fatal(err)
	}
	defer rank.Wait()
	defer rank.Process.Kill()
	ours.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	fork, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}

	w := watching(t)
	server := joined(t, w, os.Getpid())
	joined(t, w, rank.Process.Pid)
	forked := joined(t, w, fork)
	if gone := w.goneRanks(server); gone != nil || w.ranks[fork] != "" || w.ranks[rank.Process.Pid] != "TP3" {
		t.Fatalf("gone is %+v, ranks are %v", gone, w.ranks)
	}
	theirs.Close()
	until(t, "the fork ends", func() bool { return !proc.Alive(proc.ID{PID: fork, Start: forked.Start}) })
	if gone := w.goneRanks(server); gone != nil {
		t.Errorf("the end of a fork is told as %s gone", gone.Rank)
	}
	if err := rank.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the rank is missed", func() bool {
		gone := w.goneRanks(server)
		return gone != nil && gone.Rank == "TP3" && gone.Proc.PID == rank.Process.Pid
	})
}

// A child that was killed before it took its title may have been to be a rank, as
// long as the server starts; in service it was a helper.
func TestKilledChildWithoutATitle(t *testing.T) {
	for ready, want := range map[bool]bool{false: true, true: false} {
		child := exec.Command("/bin/sleep", "1000")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		defer child.Wait() // not before: it lies there uncollected
		w := watching(t)
		w.ready = ready
		server := joined(t, w, os.Getpid())
		p := joined(t, w, child.Process.Pid)
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		until(t, "it is dead", func() bool { return !proc.Alive(proc.ID{PID: p.PID, Start: p.Start}) })
		if gone := w.goneRanks(server); (gone != nil) != want {
			t.Errorf("ready is %v: gone is %+v", ready, gone)
		}
	}
}

// joined makes a living process a member.
func joined(t *testing.T, w *watcher, pid int) wire.Proc {
	t.Helper()
	p, err := proc.Identify(pid)
	if err != nil {
		t.Fatal(err)
	}
	m := wire.Proc{PID: pid, Start: p.Start, PPID: p.PPID}
	w.members[pid] = m
	return m
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
		time.Sleep(5 * time.Millisecond) // the pause of a poll
	}
}
