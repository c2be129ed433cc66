//go:build cgo

package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// settled fails the test if goroutines are left when all is closed.
func settled(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

func TestSamplesComeAtThePaceAskedFor(t *testing.T) {
	settled(t)
	s := newStage(t, 1, func(o *Options) { o.Interval = time.Hour })
	first := await[Sample](s, nil)
	if first.GPUs[0].Processes == nil {
		t.Error("the first sample has no process list")
	}
	s.Pace(10 * time.Millisecond)
	for range 3 {
		if next := await[Sample](s, nil); next.GPUs[0].Processes != nil {
			t.Error("a later sample has a process list that nobody asked for")
		}
	}
	s.Pace(time.Hour)
	if s.snapshot().GPUs[0].Processes == nil {
		t.Error("a snapshot has no process list")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Snapshot(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close a snapshot gives %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close gives %v", err)
	}
}

func TestNoLibrary(t *testing.T) {
	settled(t)
	s := prepare(t, 0)
	s.Client = Start(Options{Argv: []string{os.Args[0]}, Env: s.env("/nonexistent/libnvidia-ml.so.1")})
	defer s.Close()
	if a := await[SourceAbsent](s, nil); !strings.Contains(a.Reason, "nonexistent") {
		t.Errorf("the reason is %q", a.Reason)
	}
	for range 2 {
		if _, err := s.Snapshot(context.Background()); !errors.Is(err, ErrAbsent) {
			t.Errorf("a snapshot gives %v", err)
		}
	}
	if len(s.seen) != 1 {
		t.Errorf("absence is told as %+v", s.seen)
	}
}

func TestHangingDriver(t *testing.T) {
	settled(t)
	s := newStage(t, 2, func(o *Options) { o.Hang = 200 * time.Millisecond })
	await[Sample](s, nil)
	s.board.GPUs[1].Hang = 1500
	s.write()
	first := await[SourceHanging](s, nil)
	if first.For < 200*time.Millisecond || first.Last.IsZero() {
		t.Errorf("hanging is told as %+v", first)
	}
	named := await(s, func(h SourceHanging) bool { return h.Call != "" })
	if named.GPU != 1 || !strings.HasPrefix(named.Call, "nvmlDevice") {
		t.Errorf("the call that hangs is told as %+v", named)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Snapshot(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("meanwhile a snapshot gives %v", err)
	}
	s.board.GPUs[1].Hang = 0
	s.write()
	if back := await[SourceBack](s, nil); back.After < first.For {
		t.Errorf("after hanging for %v it is back after %v", first.For, back.After)
	}
	if sample := s.snapshot(); len(sample.GPUs) != 2 {
		t.Errorf("after that a snapshot gives %+v", sample)
	}
}

// While a driver hangs, nothing waits for it: not even the end.
func TestCloseWhileHanging(t *testing.T) {
	settled(t)
	s := newStage(t, 1, func(o *Options) { o.Hang, o.Grace = 100*time.Millisecond, 100*time.Millisecond })
	await[Sample](s, nil)
	s.board.GPUs[0].Hang = 60_000
	s.write()
	await(s, func(h SourceHanging) bool { return h.Call != "" })
	pid := children(t)
	began := time.Now()
	err := s.Close()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	if err == nil || !strings.Contains(err.Error(), "has not come back") || !strings.Contains(err.Error(), "nvmlDevice") {
		t.Errorf("Close says %v", err)
	}
	for _, p := range pid {
		if syscall.Kill(p, 0) != nil {
			t.Errorf("the sampler %d was killed while inside the driver", p)
		}
		syscall.Kill(p, syscall.SIGKILL) // the test's own broom
	}
}

// children lists the living children of this process.
func children(t *testing.T) []int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=,comm=", "--ppid", itoa(os.Getpid())).Output()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) == 2 && f[1] != "ps" {
			pids = append(pids, atoi(f[0]))
		}
	}
	return pids
}

func TestSamplerThatDies(t *testing.T) {
	settled(t)
	s := newStage(t, 1, func(o *Options) { o.Pauses = []time.Duration{10 * time.Millisecond} })
	for _, final := range []bool{false, true} {
		await[Sample](s, nil)
		for _, pid := range children(t) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		lost := await[SourceLost](s, nil)
		if lost.Final != final || !strings.Contains(lost.Why, "killed") {
			t.Errorf("the loss is told as %+v, want final %v", lost, final)
		}
	}
	if _, err := s.Snapshot(context.Background()); !errors.Is(err, ErrLost) {
		t.Errorf("a snapshot gives %v", err)
	}
}

func TestSnapshotOutlivesASampler(t *testing.T) {
	settled(t)
	s := newStage(t, 1, func(o *Options) { o.Pauses = []time.Duration{time.Millisecond} })
	await[Sample](s, nil)
	s.board.GPUs[0].Hang = 500
	s.write()
	got := make(chan Sample, 1)
	go func() {
		sample, err := s.Snapshot(context.Background())
		if err != nil {
			t.Error(err)
		}
		got <- sample
	}()
	for _, pid := range children(t) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	s.board.GPUs[0].Hang = 0
	s.write()
	if sample := <-got; len(sample.GPUs) != 1 {
		t.Errorf("the snapshot is %+v", sample)
	}
}

func TestOddSamplers(t *testing.T) {
	settled(t)
	for name, c := range map[string]struct {
		argv []string
		why  string
	}{
		"none":          {nil, "no command"},
		"missing":       {[]string{"/nonexistent/sampler"}, "no such file"},
		"fails":         {[]string{"sh", "-c", "echo symbol lookup error >&2; exit 127"}, "exit status 127: symbol lookup error"},
		"ends":          {[]string{"true"}, "ended by itself"},
		"talks":         {[]string{"sh", "-c", "echo hello; exec cat"}, "hello"},
		"talks on":      {[]string{"sh", "-c", "yes hello"}, "hello"},
		"endless line":  {[]string{"sh", "-c", "tr '\\0' x < /dev/zero"}, "too long"},
		"other objects": {[]string{"sh", "-c", "echo '{\"news\":1}'; echo '[]'"}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, Client: Start(Options{Argv: c.argv, Pauses: []time.Duration{}})}
			lost := await[SourceLost](s, nil)
			if !strings.Contains(lost.Why, c.why) || !lost.Final {
				t.Errorf("the loss is told as %+v, want %q", lost, c.why)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A supervisor that is killed says nothing to its sampler: the end of the
// input has to be enough.
func TestSamplerEndsWithItsInput(t *testing.T) {
	s := prepare(t, 1)
	for name, end := range map[string]func(cmd *exec.Cmd, in interface{ Close() error }){
		"input closed": func(_ *exec.Cmd, in interface{ Close() error }) { in.Close() },
		"SIGTERM":      func(cmd *exec.Cmd, _ interface{ Close() error }) { cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = s.env(standIn(t))
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil { // it samples
				t.Fatal(err)
			}
			for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
				cmd.Process.Signal(sig) // of a terminal; not for it
			}
			end(cmd, in)
			go drain(out)
			if err := wait(cmd); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// A reader that is gone ends the sampler too, and not by SIGPIPE.
func TestSamplerEndsWithItsOutput(t *testing.T) {
	s := prepare(t, 1)
	cmd := exec.Command(os.Args[0])
	cmd.Env = s.env(standIn(t))
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 1))
	out.Close()
	in.Write([]byte(`{"interval_ms":1}` + "\n"))
	var exit *exec.ExitError
	if err := wait(cmd); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want status 1", err)
	}
}
