package jitlock

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hold starts a Python process that takes a lock as torch or filelock do, and
// says so. Killed, it leaves what they leave.
func hold(t *testing.T, kind Kind, path string) *exec.Cmd {
	t.Helper()
	take := "fd = os.open(path, os.O_CREAT | os.O_EXCL)" // torch/utils/file_baton.py
	if kind == FileLock {
		take = "fd = os.open(path, os.O_RDWR | os.O_TRUNC | os.O_CREAT); fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)"
	}
	cmd := exec.Command("python3", "-c", fmt.Sprintf("import fcntl, os, time\npath = %q\n%s\nprint('held', flush=True)\ntime.sleep(1000)", path, take))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// shown is what Find found, by name.
func shown(locks []Lock, dir string) (all []string) {
	for _, l := range locks {
		path, _ := filepath.Rel(dir, l.Path)
		all = append(all, fmt.Sprintf("%s %s %d", l.Kind, path, l.Holder))
	}
	slices.Sort(all)
	return all
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link") // as a cache on another disk mostly is
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a/x.lock", "a/lockfile", "a/lock.txt", "b/lock", "deep/1/2/3/4/5/6/lock"} {
		write(t, filepath.Join(dir, path))
	}
	if err := os.MkdirAll(filepath.Join(dir, "lock"), 0o755); err != nil { // a folder is no lock
		t.Fatal(err)
	}
	baton := hold(t, Baton, filepath.Join(dir, "a/lock"))
	filelock := hold(t, FileLock, filepath.Join(dir, "b/y.lock"))
	want := []string{
		fmt.Sprintf("file baton a/lock %d", baton.Process.Pid), "file baton b/lock 0", fmt.Sprintf("file lock b/y.lock %d", filelock.Process.Pid),
	}
	caches := []string{filepath.Join(dir, "a"), "", "relative", "/nonexistent", link, dir + "/"}
	if diff := cmp.Diff(want, shown(Find(context.Background(), caches, nil), dir)); diff != "" {
		t.Error(diff)
	}
	// Of processes that are not asked about, a baton has no holder.
	want[0] = "file baton a/lock 0"
	if diff := cmp.Diff(want, shown(Find(context.Background(), caches, []int{os.Getpid()}), dir)); diff != "" {
		t.Error(diff)
	}
	kill(baton)
	kill(filelock) // the kernel takes it back
	if diff := cmp.Diff([]string{"file baton a/lock 0", "file baton b/lock 0"}, shown(Find(context.Background(), caches, nil), dir)); diff != "" {
		t.Error(diff)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if found := Find(over, caches, nil); found != nil {
		t.Errorf("after the end: %v", found)
	}
}

func TestStale(t *testing.T) {
	l := Lock{Path: "/x/lock", Kind: Baton, Modified: time.Now().Add(-time.Hour)}
	if !l.Stale() || !strings.Contains(l.String(), "file baton /x/lock, 1h0m0s old, nobody who can be seen has it") {
		t.Errorf("%s: stale %v", l, l.Stale())
	}
	if l.Holder = os.Getpid(); l.Stale() || !strings.Contains(l.String(), fmt.Sprintf("held by process %d (", os.Getpid())) {
		t.Errorf("%s: stale %v", l, l.Stale())
	}
	if (Lock{Kind: FileLock}).Stale() {
		t.Error("the kernel knows when a file lock ends")
	}
}

// A baton is removed only where it is the very one that was seen, and nobody
// holds it.
func TestClear(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "lock")
	holder := hold(t, Baton, path)
	seen := Find(ctx, []string{filepath.Dir(path)}, []int{holder.Process.Pid})[0]
	refused := func(l Lock, why string) {
		t.Helper()
		if removed, err := Clear(ctx, l); removed || err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("want %q, got %v", why, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
	refused(seen, "somebody may hold it")
	kill(holder)
	other := seen
	other.Modified = seen.Modified.Add(time.Second)
	refused(other, "another's by now")
	filelock := seen
	filelock.Kind = FileLock
	refused(filelock, "cannot remove a file lock")
	for _, want := range []bool{true, false} { // the second time there is nothing to do
		if removed, err := Clear(ctx, seen); removed != want || err != nil {
			t.Errorf("removed: %v, %v", removed, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it stands")
	}
}

func TestParseFlocks(t *testing.T) {
	got := parseFlocks("1: FLOCK  ADVISORY  WRITE 708 08:01:123456 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 709 08:01:123456 0 EOF\n" +
		"2: POSIX  ADVISORY  READ  -1 00:2f:77 0 EOF\n3: POSIX  ADVISORY  READ 5 00:2f:78 1 2\nx\n4: LEASE  ACTIVE    READ 9 08:01:9 0 EOF\n5: FLOCK ADVISORY WRITE 6 nonsense 0 EOF\n")
	want := flocks{123456: {{"08:01", 708}}, 78: {{"00:2f", 5}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(flock{})); diff != "" {
		t.Error(diff)
	}
}
