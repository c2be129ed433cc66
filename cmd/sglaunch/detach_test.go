package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"sglaunch/internal/proc"
	"sglaunch/supervisor"
)

// A launch outlives whoever started it, is followed and left alone again, and
// ends by name with its exit code for whoever follows it still.
func TestDetachAndAttach(t *testing.T) {
	dir := t.TempDir()
	s := standing{&launched{t: t}, dir}
	t.Setenv("XDG_RUNTIME_DIR", "") // no manager of a person who runs this test
	program := filepath.Join(dir, "chatty.sh")
	script := "trap 'echo drained; exit 0' TERM\necho hello\ni=0; while :; do i=$((i+1)); echo tick $i; sleep 0.1; done\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	code, out, errout := s.sglaunch("run", "-d", "--server.name=glm", "--", "sh", program)
	if code != exitOK || !strings.Contains(out, "glm runs detached") {
		t.Fatalf("run --detach: %d %s %s", code, out, errout)
	}
	st := s.status("glm")
	t.Cleanup(func() { _ = syscall.Kill(st.Processes.Shim, syscall.SIGTERM); s.untilGone() })
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s to return", took)
	}
	if shim, err := proc.Identify(st.Processes.Shim); err != nil || shim.Session != shim.PID {
		t.Errorf("the launch is in session %d, %v", shim.Session, err)
	}
	if code, _, errout := s.sglaunch("run", "--detach", "--server.name=glm", "--", "true"); code != exitRunning || !strings.Contains(errout, "already running") {
		t.Errorf("a second one: %d %s", code, errout)
	}

	shows := func(l *launched, pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		s.eventually("attach shows "+pattern, func() bool { return re.Match(l.stdout.bytes()) })
	}
	followed := startLaunch(t, dir, nil, "attach", "--all")
	shows(followed, `(?s)^hello.*tick 1\n.*tick 7\n`)
	st = s.status("glm") // by now it has a server
	if err := followed.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := followed.wait(); code != exitOK || !strings.Contains(string(followed.stderr.bytes()), "detached; glm goes on") {
		t.Errorf("Ctrl-C: %d %s", code, followed.stderr.bytes())
	}
	if now := s.status("glm"); now.Processes.Server != st.Processes.Server {
		t.Error("detaching has touched the server")
	}

	again := startLaunch(t, dir, nil, "attach", "-n", "2")
	shows(again, `^tick \d+\ntick \d+\ntick`)
	if code, _, errout := s.sglaunch("stop"); code != exitOK {
		t.Errorf("stop: %s", errout)
	}
	if code := again.wait(); code != exitOK {
		t.Errorf("who follows until the end: %d %s", code, again.stderr.bytes())
	}
	if text := string(again.stderr.bytes()); !strings.Contains(text, "stopping: sglaunch stop") || !strings.Contains(text, "glm: ended with 0") {
		t.Errorf("who follows is told %q", text)
	}
	if !strings.HasSuffix(string(again.stdout.bytes()), "drained\n") {
		t.Errorf("the last words are missing: %q", again.stdout.bytes())
	}
	if code, _, errout := s.sglaunch("attach"); code != 1 || !strings.Contains(errout, "no launch is running") {
		t.Errorf("attach to nothing: %d %s", code, errout)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state/run/handover*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// What ends at once says why.
func TestDetachedEndsAtOnce(t *testing.T) {
	s := standing{&launched{t: t}, t.TempDir()}
	t.Cleanup(s.untilGone)
	t.Setenv("XDG_RUNTIME_DIR", "")
	code, out, errout := s.sglaunch("run", "-d", "--server.name=glm", "--", "/nowhere/at/all")
	if code == exitOK && strings.Contains(out, "runs detached") {
		return // it was seen alive before it ended: as good an answer
	}
	if code != 1 || !strings.Contains(errout, "ended at once") || !strings.Contains(errout, "/nowhere/at/all") {
		t.Errorf("%d %s %s", code, out, errout)
	}
}

// untilGone waits until no sglaunch of a detached launch writes into the folder of
// the test any more.
func (s standing) untilGone() {
	s.eventually("every launch is gone", func() bool {
		folders, _ := filepath.Glob(filepath.Join(s.dir, "state", "launches", "*"))
		return !slices.ContainsFunc(folders, func(folder string) bool {
			r, err := supervisor.ReadLaunchRecord(filepath.Join(folder, "launch.json"))
			return err != nil || proc.Alive(proc.ID{PID: r.Shim.PID, Start: r.Shim.Start})
		})
	})
}

// A launch at a terminal ends with it; SIGHUP is no reload there.
func TestTerminalVanishes(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // what is caught here is heard by a child, also where nohup runs the test
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := standing{&launched{t: t}, dir}
	cmd := exec.Command(self, "run", "--server.name=glm", "--", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
	cmd.Env = append(os.Environ(), "SGLAUNCH_STATE="+filepath.Join(dir, "state"))
	master, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s.eventually("the server runs", func() bool { // what it prints fits into the terminal, unread
		code, out, _ := s.sglaunch("status", "--json", "glm")
		return code == exitOK && strings.Contains(out, `"state":"starting"`)
	})
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if st := s.status("glm"); st.Exit == nil || st.Exit.Code != exitOK || !strings.Contains(st.Exit.Reason, "SIGHUP") {
		t.Errorf("the status is %+v", st)
	}
}
