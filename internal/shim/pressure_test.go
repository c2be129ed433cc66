package shim_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
	"sglaunch/internal/shim/wire"
)

// flooded is a server that has printed size bytes of noise, to the end of which
// nobody had to read a byte.
func (r *rig) flooded(p *part, size int) {
	r.t.Helper()
	spec := r.spec(1, self(), fmt.Sprint(size))
	spec.Env = role("flood")
	p.spawn(spec)
	if m := p.await(wire.Exited); m.Status.Code != 0 {
		r.t.Errorf("exited: %v", m.Status)
	}
	if m := p.await(wire.Drained); m.To != int64(size) || m.Cut {
		r.t.Errorf("drained: %+v", m)
	}
}

func noiseOf(size int) []byte {
	all, _ := io.ReadAll(io.LimitReader(noise(), int64(size)))
	return all
}

// A terminal that was stopped with Ctrl-S holds up neither the server nor the
// supervisor, and shows every byte after Ctrl-Q.
func TestStoppedTerminal(t *testing.T) {
	const size = 12 << 20 // three times the memory
	o, master, screen := person(t)
	r := newRig(t, o)
	p := r.supervisor()
	if _, err := master.WriteString("\x13"); err != nil {
		t.Fatal(err)
	}
	r.flooded(p, size)
	if n := len(screen.bytes()); n != 0 {
		t.Errorf("the stopped terminal shows %d bytes", n)
	}
	if _, err := master.WriteString("\x11"); err != nil {
		t.Fatal(err)
	}
	p.finish(0)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	// The person's terminal, unlike the server's, makes two bytes of an end of line.
	want := bytes.ReplaceAll(noiseOf(size), []byte("\n"), []byte("\r\n"))
	eventually.True(t, "the last byte on the screen", func() bool { return len(screen.bytes()) >= len(want) })
	same(t, "screen", screen.bytes(), want)
	same(t, "log", r.log(1), noiseOf(size))
}

// The journal's socket that nobody reads, since journald hangs, is a reader like
// any other; it gets every line later.
func TestBlockedJournal(t *testing.T) {
	const lines = 120_000 // more than memory and socket hold
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	journald, socket := os.NewFile(uintptr(ends[0]), "journald"), os.NewFile(uintptr(ends[1]), "socket")
	defer journald.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(ends[1], &stat); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{stdout: socket, stderr: socket, env: []string{fmt.Sprintf("JOURNAL_STREAM=%d:%d", stat.Dev, stat.Ino)}})
	socket.Close()
	p := r.supervisor()
	p.spawn(r.spec(1, "seq", "-f", "a line of the server's, the one with number %.0f", fmt.Sprint(lines)))
	p.await(wire.Drained)
	p.finish(0)
	got, err := io.ReadAll(journald)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "journal", got, r.log(1))
	if n := bytes.Count(got, []byte("\n")); n != lines {
		t.Errorf("%d lines", n)
	}
	r.exit()
}

// Standard output on a full disk: the server and its log go on, and once there
// is room nothing is missing.
func TestStdoutOnAFullDisk(t *testing.T) {
	const size = 3 << 20 // no more than the memory: the log may be on that disk as well
	disk := smallDisk(t, 1<<20)
	out, err := os.OpenFile(filepath.Join(disk.dir, "out"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r := newRig(t, rigOptions{stdout: out})
	p := r.supervisor()
	r.flooded(p, size)
	for m := p.await(wire.Trouble); !strings.HasPrefix(m.Text, "cannot write to standard output: "); m = p.await(wire.Trouble) {
		if !strings.HasPrefix(m.Text, "cannot write the log: ") { // only where it has no disk of its own
			t.Errorf("trouble: %+v", m)
		}
	}
	disk.grow(t, r.pid(), 2*size)
	p.finish(0)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	got, _ := os.ReadFile(out.Name())
	same(t, "standard output", got, noiseOf(size))
	same(t, "log", r.log(1), noiseOf(size))
}

// A disk that stays full is not waited for without end, and what standard output
// lacks is counted.
func TestStdoutOnADiskThatStaysFull(t *testing.T) {
	const size = 12 << 20
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	r := newRig(t, rigOptions{stdout: full, durations: durations{FlushPatience: 300 * time.Millisecond}})
	p := r.supervisor()
	r.flooded(p, size)
	p.finish(0)
	if status := r.exit(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	want := fmt.Sprintf("sglaunch: %d bytes of output are missing on standard output, which took nothing for 300ms; see the log\n", size)
	same(t, "standard error", r.stderr.bytes(), []byte(want))
	same(t, "log", r.log(1), noiseOf(size))
}

// While the disk of the log is full the server goes on. What is lost meanwhile is
// a hole of the told size; all else is at its place.
func TestLogOnADiskThatIsFullForAWhile(t *testing.T) {
	const first, second = 12 << 20, 1 << 20
	disk := smallDisk(t, 1<<20)
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	gate := r.path("gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	spec := r.spec(1, "sh", "-c", `"$0" $1; cat "$3"; exec "$0" $2`, self(), fmt.Sprint(first), fmt.Sprint(second), gate)
	spec.Env, spec.Log = role("flood"), filepath.Join(disk.dir, "server.log")
	p.spawn(spec)
	opened, err := os.OpenFile(gate, os.O_WRONLY, 0) // the first flood is over
	if err != nil {
		t.Fatal(err)
	}
	if m := p.await(wire.Trouble); !strings.HasPrefix(m.Text, "cannot write the log: ") {
		t.Errorf("trouble: %+v", m)
	}
	disk.grow(t, r.pid(), 2*(first+second))
	again := regexp.MustCompile(`^the log is written again; it lacks (\d+) bytes$`)
	var lacks []string
	for lacks == nil {
		lacks = again.FindStringSubmatch(p.await(wire.Trouble).Text) // a Trouble of a blocked reader may come first
	}
	opened.Close()
	p.await(wire.Drained)
	p.finish(0)
	r.exit()
	want := append(noiseOf(first), noiseOf(second)...)
	log, _ := os.ReadFile(spec.Log)
	if len(log) != len(want) {
		t.Fatalf("the log has %d bytes, want %d", len(log), len(want))
	}
	end := len(log)
	for end > 0 && log[end-1] == want[end-1] {
		end--
	}
	hole, _ := strconv.Atoi(lacks[1])
	if hole > first-1<<20 || hole > end {
		t.Fatalf("a hole of %d bytes before %d", hole, end)
	}
	same(t, "the log before its hole", log[:end-hole], want[:end-hole])
	for i := end - hole; i < end; i++ {
		if log[i] != 0 && log[i] != want[i] { // a failed write may have written something
			t.Fatalf("byte %d of the log, in its hole, is %d", i, log[i])
		}
	}
}
