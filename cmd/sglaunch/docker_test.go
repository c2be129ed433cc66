package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// client stands in for docker's: the container that it asks for is not its child,
// and is not ended with it.
const client = `#!/bin/sh
case $1 in
run)
	trap '' TERM INT
	for w; do case $w in --cidfile=*) echo 0123456789abcdef >"${w#--cidfile=}" ;; esac; done
	touch "$ENGINE/wanted"
	echo "the container runs"
	while [ -e "$ENGINE/wanted" ] || [ -e "$ENGINE/runs" ]; do sleep 0.05; done
	exit 137 ;;
ps) if [ -e "$ENGINE/runs" ]; then echo 0123456789abcdef; fi ;;
kill) touch "$ENGINE/kill"; while [ -e "$ENGINE/runs" ]; do sleep 0.05; done ;;
esac
`

// engine owns containers, as a daemon does: it is no relative of sglaunch.
type engine struct{ dir string }

func newEngine(t *testing.T) engine {
	t.Helper()
	e := engine{t.TempDir()}
	if err := os.WriteFile(filepath.Join(e.dir, "docker"), []byte(client), 0o755); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		e.serve(stop)
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return e
}

func (e engine) has(name string) bool {
	_, err := os.Stat(filepath.Join(e.dir, name))
	return err == nil
}

// serve starts a container that is wanted and kills it when it is told to.
func (e engine) serve(stop chan struct{}) {
	var box *exec.Cmd
	for {
		select {
		case <-stop:
			if box != nil {
				_ = box.Process.Kill()
				_ = box.Wait()
			}
			return
		case <-time.After(20 * time.Millisecond): // the pause of a poll
		}
		switch {
		case box == nil && e.has("wanted"):
			box = exec.Command("sleep", "1000")
			if box.Start() != nil {
				return
			}
			_ = os.WriteFile(filepath.Join(e.dir, "runs"), nil, 0o600)
			_ = os.Remove(filepath.Join(e.dir, "wanted"))
		case box != nil && e.has("kill"):
			_ = box.Process.Kill()
			_ = box.Wait()
			box = nil
			_ = os.Remove(filepath.Join(e.dir, "kill"))
			_ = os.Remove(filepath.Join(e.dir, "runs"))
		}
	}
}

// A container is ended through its client: by a stop, though the client hears
// nothing, and by a recovery where everything of sglaunch was killed.
func TestContainerIsEnded(t *testing.T) {
	e := newEngine(t)
	dir := t.TempDir()
	words := []string{"run", "--server.name=boxed", "--stop.grace=1s", "--", filepath.Join(e.dir, "docker"), "run", "--rm", "img", "serve"}
	start := func() standing {
		s := standing{startLaunch(t, dir, []string{"ENGINE=" + e.dir}, words...), dir}
		s.eventually("the container runs", func() bool { return e.has("runs") && strings.Contains(string(s.stdout.bytes()), "the container runs") })
		return s
	}
	s := start()
	t.Setenv("ENGINE", e.dir)
	if code, _, errout := s.sglaunch("stop", "--now", "--wait"); code != exitOK {
		t.Errorf("stop: %d %s\n%s", code, errout, s.stderr.bytes())
	}
	if s.wait(); e.has("runs") {
		t.Errorf("the container outlives its launch:\n%s", s.stderr.bytes())
	}

	s = start()
	st := s.status("boxed")
	for _, pid := range []int{st.Processes.Supervisor, st.Processes.Shim} {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	for _, pid := range []int{st.Processes.Supervisor, st.Processes.Shim} {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.wait()
	if !e.has("runs") {
		t.Fatal("the stand-in's container ends with its client: it proves nothing")
	}
	if code, out, errout := s.sglaunch("recover"); code != exitOK || e.has("runs") {
		t.Errorf("recover: %d %s %s; the container runs: %v", code, out, errout, e.has("runs"))
	}
}

// What cannot work with a container is said before the start, by check and run.
func TestContainerRefused(t *testing.T) {
	e := newEngine(t)
	s := standing{&launched{t: t}, t.TempDir()}
	for flag, want := range map[string]string{"-d": "--detach ends at once", "--cidfile=" + filepath.Join(e.dir, "docker"): "refuses a --cidfile that exists"} {
		words := []string{"--", filepath.Join(e.dir, "docker"), "run", flag, "img", "python3", "-m", "sglang.launch_server", "--model-path", "/models/x"}
		if code, out, _ := s.sglaunch(append([]string{"check", "-q"}, words...)...); code != exitNever || !strings.Contains(out, want) || strings.Contains(out, "/models/x") {
			t.Errorf("check %s: %d\n%s", flag, code, out)
		}
		if code, _, errout := s.sglaunch(append([]string{"run"}, words...)...); code != exitNever || !strings.Contains(errout, want) || e.has("wanted") {
			t.Errorf("run %s: %d\n%s", flag, code, errout)
		}
	}
	for flag, want := range map[string]string{"-t": "passes no signal on", "--name=glm": `the name "glm" once`} {
		words := []string{"check", "-q", "--", filepath.Join(e.dir, "docker"), "run", flag, "img", "python3", "-m", "sglang.launch_server", "--model-path", "/models/x"}
		if code, out, _ := s.sglaunch(words...); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("check %s: %d\n%s", flag, code, out)
		}
	}
}
