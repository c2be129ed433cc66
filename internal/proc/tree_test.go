package proc

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
)

// Members are found when they are born and missed when they die, orphans and
// the children of others included; sides are inherited.
func TestTree(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	_, aside := child(t, "sh", "-c", "echo up; sleep 100 & sleep 100; :")
	judged := map[int]bool{}
	tree := NewTree(os.Getpid(), func(p Proc) Side {
		if judged[p.PID] {
			t.Errorf("%d was judged twice", p.PID)
		}
		judged[p.PID] = true
		return Ours
	})
	tree.Put(aside, Aside)
	eventually.True(t, "three aside", func() bool {
		if born, _, err := tree.Scan(); err != nil || len(born) != 0 {
			t.Fatalf("at first born %+v, %v", born, err)
		}
		return len(tree.Members(Aside)) == 3
	})
	cmd := exec.Command("sh", "-c", "setsid sleep 100 & echo up; sleep 100; :")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k, server := begin(t, cmd)
	eventually.True(t, "the server, its child and one in a session of its own", func() bool {
		if _, _, err := tree.Scan(); err != nil {
			t.Fatal(err)
		}
		apart := 0
		members := tree.Members(Ours)
		for _, p := range members {
			if p.Session != server.PID {
				apart++
			}
		}
		return len(members) == 3 && apart == 1
	})
	if !slices.ContainsFunc(tree.Members(Ours), isProc(server.ID)) || !slices.ContainsFunc(tree.Members(Aside), isProc(aside.ID)) {
		t.Error("sides are wrong")
	}
	_ = unix.Kill(-server.PID, unix.SIGKILL)
	_ = k.wait()
	var died []ID
	eventually.True(t, "two deaths", func() bool {
		_, d, _ := tree.Scan()
		died = append(died, d...)
		return len(died) == 2
	})
	if members := tree.Members(Ours); len(members) != 1 || members[0].PPID != os.Getpid() {
		t.Errorf("left %+v", members)
	}
	for _, p := range tree.Members(Ours) {
		_ = Send(p.ID, unix.SIGKILL)
		_, _ = syscall.Wait4(p.PID, nil, 0, nil)
	}
}

func BenchmarkTreeScan(b *testing.B) {
	tree := NewTree(os.Getpid(), func(Proc) Side { return Ours })
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := tree.Scan(); err != nil {
			b.Fatal(err)
		}
	}
}

func isProc(id ID) func(Proc) bool { return func(p Proc) bool { return p.ID == id } }
