package shim_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
	"sglaunch/internal/shim/wire"
)

// A reader of standard output that does not read holds up neither the server
// nor the supervisor, and gets every byte once it reads, from the log where the
// memory has moved on.
func TestBlockedStdout(t *testing.T) {
	const size = 12 << 20 // three times the memory
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	r := newRig(t, rigOptions{stdout: write})
	write.Close()
	p := r.supervisor()
	spec := r.spec(1, self(), fmt.Sprint(size))
	spec.Env = role("flood")
	p.spawn(spec)
	if m := p.await(wire.Drained); m.To != size {
		t.Errorf("drained: %+v", m)
	}
	p.kill(1)
	p.await(wire.TreeGone)
	p.finish(0)
	got, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := io.ReadAll(io.LimitReader(noise(), size))
	same(t, "standard output", got, want)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// unread is a launch that has ended with more output than its reader, who reads no
// more, has taken.
func unread(t *testing.T, patience time.Duration) (*rig, *part) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	r := newRig(t, rigOptions{stdout: write, durations: durations{FlushPatience: patience}})
	write.Close()
	p := r.supervisor()
	spec := r.spec(1, self(), "1000000")
	spec.Env = role("flood")
	p.spawn(spec)
	p.await(wire.Drained)
	p.finish(0)
	return r, p
}

// A reader that never reads again is not waited for without end.
func TestStdoutBlockedForEver(t *testing.T) {
	r, _ := unread(t, 300*time.Millisecond)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// Who asks for the end while a reader that does not read is waited for, gets it.
func TestAskedWhileNobodyReads(t *testing.T) {
	r, p := unread(t, time.Hour)
	eventually.True(t, "the supervisor to be let go", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.over
	})
	r.signal(unix.SIGTERM)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if text := r.stderr.text(); !strings.Contains(text, "missing on standard output, which took nothing for 1s") {
		t.Errorf("standard error: %s", text)
	}
}

// A reader that goes away (head, a closed pager) harms nobody.
func TestStdoutClosed(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{stdout: write})
	write.Close()
	p := r.supervisor()
	spec := r.spec(1, self())
	spec.Env = role("ticker")
	server := p.spawn(spec)
	p.awaitOutput("line 0000010")
	read.Close()
	p.awaitOutput("line 0000500")
	if m := p.await(wire.Trouble); !strings.Contains(m.Text, "standard output") {
		t.Errorf("trouble: %+v", m)
	}
	if unix.Kill(server.PID, 0) != nil {
		t.Error("the server died")
	}
	p.finish(0)
	r.exit()
}

// A supervisor that does not read what it asked for holds up nobody.
func TestDeafSupervisor(t *testing.T) {
	const size = 12 << 20
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, self(), fmt.Sprint(size))
	spec.Env = role("flood")
	p.spawn(spec)
	p.until("some output", func() bool { return len(p.output) > 0 })
	_ = unix.Kill(p.pid, unix.SIGSTOP)
	eventually.True(t, "all output on standard output", func() bool { return len(r.stdout.bytes()) == size })
	_ = unix.Kill(p.pid, unix.SIGCONT)
	p.await(wire.Drained)
	want, _ := io.ReadAll(io.LimitReader(noise(), size))
	same(t, "stream", p.received(), want)
	p.finish(0)
	r.exit()
}

// A full disk is told, costs the server nothing, and what memory holds still
// reaches everybody.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t, 1<<20)
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	const size = 3 << 20
	spec := r.spec(1, self(), fmt.Sprint(size))
	spec.Env, spec.Log = role("flood"), filepath.Join(disk.dir, "server.log")
	p.spawn(spec)
	if m := p.await(wire.Trouble); !strings.Contains(m.Text, "cannot write the log") {
		t.Errorf("trouble: %+v", m)
	}
	if m := p.await(wire.Drained); m.To != size {
		t.Errorf("drained: %+v", m)
	}
	if m := p.await(wire.Exited); m.Status.Code != 0 {
		t.Errorf("exited: %+v", m.Status)
	}
	if m := p.await(wire.Trouble); !strings.Contains(m.Text, "the log is closed; it lacks") {
		t.Errorf("trouble: %+v", m)
	}
	p.finish(0)
	r.exit()
	want, _ := io.ReadAll(io.LimitReader(noise(), size))
	same(t, "standard output", r.stdout.bytes(), want)
	same(t, "stream", p.received(), want)
	log, _ := os.ReadFile(spec.Log)
	if len(log) == 0 || !bytes.HasPrefix(want, log) {
		t.Errorf("the log has %d bytes and is no beginning of the output", len(log))
	}
}

// disk is a folder in which files cannot grow for long.
type disk struct {
	dir     string
	mounted bool // a file system of its own; else a limit bounds each file of the shim's
}

// smallDisk is a file system of a few bytes. Without the right to mount one, a
// file size limit stands in.
func smallDisk(t *testing.T, size int) disk {
	t.Helper()
	d := disk{dir: t.TempDir(), mounted: true}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Logf("cannot mount: %v; a file size limit is used", err)
		d.mounted = false
		limitFiles(t, uint64(size))
		return d
	}
	t.Cleanup(func() { _ = unix.Unmount(d.dir, unix.MNT_DETACH) })
	return d
}

// grow makes room, for a process where there is no file system to be had.
func (d disk) grow(t *testing.T, pid, size int) {
	t.Helper()
	if d.mounted {
		if err := unix.Mount("tmpfs", d.dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", size)); err != nil {
			t.Fatal(err)
		}
		return
	}
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(size), Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
}

// limitFiles bounds the size of files that processes started from now on write.
func limitFiles(t *testing.T, size uint64) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &was) })
}

// A log that cannot be created is told; the server is started all the same.
func TestNoLog(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, "echo", "hello")
	spec.Log = filepath.Join(r.dir, "absent", "server.log")
	p.spawn(spec)
	if m := p.await(wire.Trouble); !strings.Contains(m.Text, "cannot create the log") {
		t.Errorf("trouble: %+v", m)
	}
	p.await(wire.Drained)
	same(t, "stream", p.received(), []byte("hello\n"))
	p.finish(0)
	r.exit()
}

// A server that is gone before the supervisor asks for its output is heard all
// the same, with and without a log: the end comes behind the last byte.
func TestOutputIsAskedForLate(t *testing.T) {
	for _, log := range []string{"server.log", "absent/server.log"} {
		r := newRig(t, rigOptions{})
		p := r.supervisor()
		spec := r.spec(1, "echo", "hello")
		spec.Log = filepath.Join(r.dir, log)
		p.send(wire.Message{Type: wire.Spawn, Spec: &spec})
		p.await(wire.Exited)
		eventually.True(t, "the shim to close the terminal", func() bool { return !holdsTerminal(r.pid()) })
		p.kill(1)
		p.await(wire.TreeGone) // whatever was said before it has arrived
		if p.has(wire.Drained) {
			t.Error("the end was told before the output")
		}
		p.send(wire.Message{Type: wire.Stream, Attempt: 1})
		if m := p.await(wire.Drained); m.To != 6 || m.Cut {
			t.Errorf("drained: %+v", m)
		}
		same(t, "stream", p.received(), []byte("hello\n"))
		p.finish(0)
		r.exit()
	}
}

// holdsTerminal reports whether a process has the near end of a pty open; one
// that cannot be asked does.
func holdsTerminal(pid int) bool {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, fd := range fds {
		if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); strings.HasSuffix(to, "/ptmx") {
			return true
		}
	}
	return err != nil
}

// A descendant that holds the terminal dies with the tree.
func TestGrandchildHoldsTheTerminal(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, "sh", "-c", "setsid sleep 1000 & echo bye")
	p.spawn(spec)
	p.await(wire.Exited)
	p.kill(1)
	p.await(wire.TreeGone)
	if m := p.await(wire.Drained); m.Cut || m.To != 4 {
		t.Errorf("drained: %+v", m)
	}
	p.finish(0)
	r.exit()
}

// Whoever else holds the terminal does not hold up the end: the output is cut
// after the drain time.
func TestSomebodyElseHoldsTheTerminal(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	spec := r.spec(1, "sh", "-c", "echo hello; exec sleep 1000")
	spec.Drain = wire.Duration(200 * time.Millisecond)
	server := p.spawn(spec)
	p.awaitOutput("hello")
	held, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", server.PID), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	p.kill(1)
	p.await(wire.TreeGone)
	if m := p.await(wire.Drained); !m.Cut || m.To != 6 {
		t.Errorf("drained: %+v", m)
	}
	p.finish(0)
	r.exit()
}
