package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
)

// This binary plays the processes that the tests look at and end.
const roleVar = "PROC_TEST_ROLE"

func init() {
	if os.Getenv(roleVar) == "threads" {
		runtime.LockOSThread() // the main goroutine stays on the first thread
	}
}

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "deaf":
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
		fmt.Println("up")
		time.Sleep(2 * time.Minute) // not for ever: the runtime would call that a deadlock
	case "threads": // its first thread ends, the others live
		fmt.Println("up")
		go func() { select {} }()
		time.Sleep(50 * time.Millisecond)
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// child is a process of a test's, in a session of its own, that says "up".
func child(t *testing.T, argv ...string) (kid, Proc) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return begin(t, cmd)
}

// kid is a child that several may wait for.
type kid struct {
	*exec.Cmd
	wait func() error
}

func begin(t *testing.T, cmd *exec.Cmd) (kid, Proc) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := kid{cmd, sync.OnceValue(cmd.Wait)}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Process.Kill()
		_ = k.wait()
	})
	word := make([]byte, 3)
	if _, err := io.ReadFull(out, word); err != nil || string(word) != "up\n" {
		t.Fatalf("the child says %q, %v", word, err)
	}
	p, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return k, p
}

func TestIdentify(t *testing.T) {
	cmd, p := child(t, "sh", "-c", "echo up; sleep 100; :")
	if p.PPID != os.Getpid() || p.Session != p.PID || p.Group != p.PID || p.Comm != "sh" || p.Start == 0 || p.Threads != 1 {
		t.Errorf("identified %+v", p)
	}
	if !Alive(p.ID) || Alive(ID{p.PID, p.Start + 1}) {
		t.Error("alive is wrong")
	}
	_ = cmd.Process.Kill()
	eventually.True(t, "a zombie", func() bool { z, err := Identify(p.PID); return err == nil && z.State == 'Z' && z.Dead() })
	if Alive(p.ID) {
		t.Error("a zombie is alive")
	}
	_ = cmd.wait()
	if _, err := Identify(p.PID); !errors.Is(err, ErrGone) {
		t.Errorf("after the end: %v", err)
	}
}

// A zombie whose other threads run still holds its memory.
func TestZombieWithThreadsIsAlive(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=threads")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k, p := begin(t, cmd)
	eventually.True(t, "a zombie with threads", func() bool { z, err := Identify(p.PID); return err == nil && z.State == 'Z' })
	if !Alive(p.ID) {
		t.Error("it is taken for dead")
	}
	z, _ := Identify(p.PID)
	if text := Condition(z); !strings.Contains(text, "others live") {
		t.Errorf("condition %q", text)
	}
	go func() { _ = k.wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if gone, left := KillAll(ctx, Membership{Recorded: []ID{p.ID}}); !gone {
		t.Errorf("left %+v", left)
	}
}

func TestParseStat(t *testing.T) {
	tail := " S 1 2 3 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 7 0 999 1 2 3"
	for _, name := range []string{"sh", "a b", "a) R 9 9", "((", "x\ny", ""} {
		p, err := parseStat([]byte("42 (" + name + ")" + tail))
		want := Proc{ID: ID{42, 999}, PPID: 1, Group: 2, Session: 3, Comm: name, State: 'S', Threads: 7, CPU: 31, MinorFaults: 11, MajorFaults: 13}
		if err != nil || p != want {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh", "x (sh)" + tail, "42 (sh) S 1 2 3", ") ("} {
		if p, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (sh) S 1 2 3 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 7 0 999 1 2 3"))
	f.Add([]byte("() ()()"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parseStat(text); err == nil && p.PID < 0 && text[0] != '-' {
			t.Errorf("%q: %+v", text, p)
		}
	})
}

func TestCommandIsMaskedAndBounded(t *testing.T) {
	_, p := child(t, "sh", "-c", "echo up; sleep 100; :", "x", "--api-key", "hunter2", strings.Repeat("long\n", 500))
	line := Command(p)
	if strings.Contains(line, "hunter2") || strings.Contains(line, "\n") || len(line) > shownCommand+10 || !strings.HasPrefix(line, "sh -c") {
		t.Errorf("command %q", line)
	}
	if got := Command(Proc{ID: ID{PID: 1 << 30}, Comm: "gone"}); got != "[gone]" {
		t.Errorf("without a process: %q", got)
	}
}

func TestRecords(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r := RecordOf(self)
	good := fmt.Sprintf(`{"pid":%d,"start":%d,"boot":%q}`, r.PID, r.Start, r.Boot)
	text := strings.Join([]string{
		good, "", "no record", `{"pid":1,"start":5,"boot":"` + r.Boot + `"}`,
		`{"pid":77,"start":5,"boot":"another"}`, `{"pid":78,"start":5}`, good[:len(good)-4],
	}, "\n")
	path := filepath.Join(t.TempDir(), "records")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := ReadRecords(path)
	if err != nil || len(records) != 1 || records[0].ID() != self.ID {
		t.Errorf("records %+v, %v", records, err)
	}
	if records, err := ReadRecords(path + ".absent"); err != nil || records != nil {
		t.Errorf("no file: %+v, %v", records, err)
	}
	if _, err := ReadRecords(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
	if _, err := parseRecords(bytes.NewReader(bytes.Repeat([]byte("x"), 2*recordLimit)), ""); err == nil {
		t.Error("a line without end was read")
	}
}

// A signal reaches the very process that is meant, or none.
func TestSendNeverHitsAnother(t *testing.T) {
	_, p := child(t, "sh", "-c", "echo up; sleep 100; :")
	for _, other := range []ID{{p.PID, p.Start + 1}, {p.PID, 0}} {
		if err := Send(other, unix.SIGKILL); !errors.Is(err, ErrGone) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	for _, forbidden := range []int{0, 1, -1, -p.PID, os.Getpid()} {
		if err := Send(ID{PID: forbidden, Start: p.Start}, unix.SIGKILL); err == nil {
			t.Errorf("pid %d was signalled", forbidden)
		}
	}
	if !Alive(p.ID) {
		t.Fatal("it was hit")
	}
	if err := Send(p.ID, unix.SIGKILL); err != nil {
		t.Error(err)
	}
}

// Pids of dead members that are in use again, by processes with other start
// times, are not touched; nor is whoever shares nothing with a member.
func TestKillAllSparesStrangers(t *testing.T) {
	_, reused := child(t, "sh", "-c", "echo up; sleep 100; :")
	_, stranger := child(t, "sh", "-c", "echo up; sleep 100; :")
	_, excluded := child(t, "sh", "-c", "echo up; sleep 100; :")
	_, member := child(t, "sh", "-c", "echo up; sleep 100 & sleep 100; :")
	m := Membership{
		Recorded: []ID{{reused.PID, reused.Start - 1}, member.ID, {1, 1}, excluded.ID, selfID(t)},
		Exclude:  []ID{excluded.ID},
	}
	eventually.True(t, "three members", func() bool {
		members, err := Members(m)
		return err == nil && len(members) == 3
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if gone, left := KillAll(ctx, m); !gone {
		t.Fatalf("left %+v", left)
	}
	for name, p := range map[string]Proc{"reused": reused, "stranger": stranger, "excluded": excluded} {
		if !Alive(p.ID) {
			t.Errorf("%s was killed", name)
		}
	}
	if Alive(member.ID) {
		t.Error("the member lives")
	}
}

func selfID(t *testing.T) ID {
	t.Helper()
	p, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

func TestSignsOfMembership(t *testing.T) {
	marker := fmt.Sprintf("PROC_TEST_MARK=%d", time.Now().UnixNano())
	cmd := exec.Command("sh", "-c", "(sleep 100 &) ; echo up; sleep 100; :")
	cmd.Env = append(os.Environ(), marker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_, p := begin(t, cmd)
	count := func(m Membership) int {
		members, err := Members(m)
		if err != nil {
			t.Fatal(err)
		}
		return len(members)
	}
	eventually.True(t, "three members by marker", func() bool { return count(Membership{Marker: marker}) == 3 })
	for name, m := range map[string]Membership{
		"record, and so its session": {Recorded: []ID{p.ID}},
		"group":                      {Groups: []int{p.Group}},
		"session":                    {Sessions: []int{p.Session}},
	} {
		if n := count(m); n != 3 {
			t.Errorf("%s: %d members", name, n)
		}
	}
	if n := count(Membership{Roots: []ID{p.ID}}); n < 1 || n > 3 {
		t.Errorf("root: %d members", n)
	}
	if n := count(Membership{Marker: marker + "x"}); n != 0 {
		t.Errorf("another marker: %d members", n)
	}
	// One that begins another program shows no environment for a moment.
	eventually.True(t, "three with the marker", func() bool { marked, err := WithMarker(marker); return err == nil && len(marked) == 3 })
	if below, _ := Descendants(os.Getpid()); !slices.ContainsFunc(below, func(d Proc) bool { return d.ID == p.ID }) {
		t.Errorf("descendants %+v", below)
	}
}

// hopper leaves its parent, its session and its pid behind some thousand times
// a second, until its deadline: nothing stays to be killed but what is seen.
const hopper = `
import os, sys, time
end = time.time() + 30
print("up", flush=True)
while time.time() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
`

// bomb doubles within its group until its deadline or 300 processes.
const bomb = `
import os, time
end = time.time() + 30
print("up", flush=True)
for i in range(8):
    os.fork()
while time.time() < end:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
`

// What forks faster than it is looked at dies all the same.
func TestKillAllEndsForkers(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	for name, script := range map[string]string{"hopper": hopper, "bomb": bomb} {
		t.Run(name, func(t *testing.T) {
			tree := NewTree(os.Getpid(), func(p Proc) Side { return Ours })
			if _, _, err := tree.Scan(); err != nil {
				t.Fatal(err)
			}
			child(t, "python3", "-c", script)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			stop := make(chan struct{})
			var reaping sync.WaitGroup
			reaping.Go(func() { reapStrays(stop) })
			defer reaping.Wait() // or it takes the next test's zombie
			defer close(stop)
			began := time.Now()
			gone, left := EndAll(ctx, nil, func() ([]Proc, bool, error) {
				_, _, err := tree.Scan()
				return tree.Members(Ours), tree.Complete(), err
			}, nil)
			t.Logf("gone %v after %v", gone, time.Since(began).Round(time.Millisecond))
			if !gone {
				t.Errorf("left %+v", left)
			}
			below, err := Descendants(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range below {
				if !p.Dead() {
					t.Errorf("survivor %+v", p)
				}
			}
		})
	}
}

// reapStrays collects adopted orphans, which nobody else waits for.
func reapStrays(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
		}
		below, _ := Descendants(os.Getpid())
		for _, p := range below {
			if p.State == 'Z' && p.PPID == os.Getpid() {
				_, _ = syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil)
			}
		}
	}
}

// Stopped and traced processes die too.
func TestKillAllEndsTheStopped(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=deaf")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k, deaf := begin(t, cmd)
	if err := Send(deaf.ID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a stopped process", func() bool { p, _ := Identify(deaf.PID); return p.State == 'T' })
	go func() { _ = k.wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if gone, left := KillAll(ctx, Membership{Recorded: []ID{deaf.ID}}); !gone {
		t.Errorf("left %+v", left)
	}
}

func TestKillAllEndsTheTraced(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, p := child(t, "sh", "-c", "echo up; sleep 100; :")
	if err := unix.PtraceAttach(p.PID); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a traced process", func() bool { q, _ := Identify(p.PID); return q.State == 't' })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if gone, left := KillAll(ctx, Membership{Recorded: []ID{p.ID}}); !gone {
		t.Errorf("left %+v", left)
	}
}

// KillAll strikes once and then keeps to its limit, whatever happens.
func TestKillAllKeepsItsLimit(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cmd, p := child(t, "sh", "-c", "echo up; sleep 100; :")
	began := time.Now()
	_, _ = KillAll(ctx, Membership{Recorded: []ID{p.ID}})
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	if err := cmd.wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the member ended with %v", err)
	}
}

// A read that never comes back costs its limit, and a bounded number of
// goroutines.
func TestGuardedReadsAreBounded(t *testing.T) {
	release := make(chan struct{})
	began := time.Now()
	for range stuckLimit + 10 {
		if _, err := guarded(time.Millisecond, func() (int, error) { <-release; return 1, nil }); !errors.Is(err, errStuck) {
			t.Fatalf("a stuck read returned %v", err)
		}
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	if len(stuck) != stuckLimit {
		t.Errorf("%d reads are stuck", len(stuck))
	}
	close(release)
	eventually.True(t, "the places to come free", func() bool { return len(stuck) == 0 })
	if n, err := guarded(time.Second, func() (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("afterwards %d, %v", n, err)
	}
}
