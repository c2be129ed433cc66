package conduct

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/gpu"
	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/supervisor/machine"
)

// stateDir is a state directory of the test's own; paths of sockets are short.
func stateDir(t *testing.T) statedir.Dir {
	t.Helper()
	dir, err := os.MkdirTemp("", "sg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("SGLAUNCH_STATE", dir)
	state, err := statedir.Open()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Where not even a record can be written the base serves all the same, and its
// exit code is ours.
func TestJournalThatCannotBeWritten(t *testing.T) {
	state := stateDir(t)
	out := filepath.Join(t.TempDir(), "args")
	study := smallStudy(func(s *tune.Study) { s.Base = "/etc/base.toml" })
	told := ""
	s, err := newSite(Options{
		State: state, Study: study, Base: smallBase, Source: gpu.NewFake(), Tell: func(text string) { told += text + "\n" },
		Program: []string{"/bin/sh", "-c", `echo "$@" >` + out + `; exit 7`, "sh"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.eyes.close()
	code, err := s.emergency(t.Context(), errors.New("the disk is full"))
	if err != nil || code != 7 || !strings.Contains(told, "the disk is full; the base is started") {
		t.Errorf("%d %v\n%s", code, err, told)
	}
	if args, err := os.ReadFile(out); err != nil || string(args) != "run -c /etc/base.toml\n" {
		t.Errorf("it was started with %q, %v", args, err)
	}
}

// A contract that does not hold leaves everything as it is.
func TestContractThatDoesNotHold(t *testing.T) {
	state := stateDir(t)
	s := &site{state: state, base: smallBase, study: smallStudy(nil), tell: func(string) {}}
	s.base.Server.Name = "prod"
	s.study.Takeover = tune.Takeover{Launch: "other", Drain: []string{"true"}}
	if err := s.takeOver(t.Context()); err == nil || !strings.Contains(err.Error(), `nothing would bring it back`) {
		t.Errorf("another launch than the base's: %v", err)
	}
	s.study.Takeover = tune.Takeover{Launch: "prod", Drain: []string{"/no/such/program"}}
	if err := s.takeOver(t.Context()); err != nil {
		t.Errorf("a launch that does not run: %v", err)
	}
	if err := command(t.Context(), []string{"/bin/sh", "-c", "echo the router says no; exit 3"}); err == nil || !strings.Contains(err.Error(), "exit status 3: the router says no") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := command(ctx, []string{"/bin/sh", "-c", "sleep 60 & sleep 60"}); err == nil {
		t.Error("a drain that hangs has drained")
	}
}

// systemd hears that something serves and never that a finalist ended.
func TestRelay(t *testing.T) {
	dir := stateDir(t).Runtime
	heard, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "systemd"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	if r, err := openRelay(filepath.Join(dir, "relay")); r != nil || err != nil {
		t.Fatalf("without a service manager: %v %v", r, err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "systemd"))
	if _, err := openRelay(filepath.Join(dir, strings.Repeat("x", 120))); err == nil {
		t.Error("a path that is too long was taken")
	}
	r, err := openRelay(filepath.Join(dir, "relay"))
	if err != nil {
		t.Fatal(err)
	}
	launch, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: r.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer launch.Close()
	next := func() string {
		buf := make([]byte, 1<<10)
		_ = heard.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := heard.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	for _, c := range []struct{ says, heard string }{
		{"STATUS=loading\nEXTEND_TIMEOUT_USEC=5", "STATUS=loading\nEXTEND_TIMEOUT_USEC=5"},
		{"STOPPING=1\nSTATUS=ended", "STATUS=ended"},
		{"MAINPID=7\nREADY=1", "READY=1"},
	} {
		if _, err := launch.Write([]byte(c.says)); err != nil {
			t.Fatal(err)
		}
		if got := next(); got != c.heard {
			t.Errorf("%q became %q", c.says, got)
		}
	}
	r.stop()
	if got := next(); got != "STOPPING=1" {
		t.Errorf("the end was told as %q", got)
	}
	r.close()
	if _, err := os.Stat(r.path); err == nil {
		t.Error("the socket is left behind")
	}
}

// A launch that is stopped before it has done anything was stopped as asked;
// one that is killed was not.
func TestServeOnAnswersForTheLaunch(t *testing.T) {
	state := stateDir(t)
	s := &site{state: state, began: time.Now(), tell: func(string) {}}
	start := func(script string) *Launch {
		t.Helper()
		p := program{argv: []string{"/bin/sh", "-c", script, "sh"}, config: "none", log: filepath.Join(t.TempDir(), "log"), env: os.Environ()}
		l, err := startLaunch("prod", state, p, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = proc.Send(l.shim, unix.SIGKILL)
			<-l.over
		})
		return l
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if code := s.serveOn(stopped, start("sleep 60"), 10*time.Second); code != 0 {
		t.Errorf("stopped before it had begun: %d", code)
	}
	asked := make(chan string, 1)
	asked <- "Ctrl-C"
	s.asked = asked
	if code := s.serveOn(t.Context(), start("trap 'exit 11' TERM; while :; do sleep 0.05; done"), 10*time.Second); code != 11 && code != 0 {
		t.Errorf("stopped by a person: %d", code) // 0: before it had set its trap
	}
	if code := s.serveOn(t.Context(), start("kill -9 $$"), 10*time.Second); code != machine.CodeHeld {
		t.Errorf("killed by somebody: %d", code)
	}
	if code := s.serveOn(stopped, start("trap '' TERM; sleep 0.3; exec sleep 60"), 50*time.Millisecond); code != machine.CodeHeld && code != 0 {
		t.Errorf("one that does not hear: %d", code)
	}
}
