package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sglaunch/internal/serve"
	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
	"sglaunch/supervisor/journal"
)

// edit replaces a part of the launch's launch.toml, or appends to it.
func (s standing) edit(was, is string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "launch.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), was, is, 1)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// A launch takes other limits and hooks while its server goes on, by name and by
// SIGHUP; a file with a mistake changes nothing, not even for a supervisor that
// has to begin anew; what the server was started with needs a new launch.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	heard := filepath.Join(dir, "heard")
	s := startStanding(t, dir, "glm", "")
	s.await(readyLine)
	before := s.status()

	s.edit("[stop]\n", fmt.Sprintf("env = { NEW = \"1\" }\n[relaunch]\nattempts = 9\n[hooks]\non_stopping = [\"/bin/sh\", \"-c\", \"cat >>%s\"]\n[stop]\n", heard))
	code, out, errout := s.sglaunch("reload")
	if code != exitOK {
		t.Fatalf("reload: %d %s", code, errout)
	}
	want := "glm is reloaded\nfrom now on:\n  relaunch.attempts\n  hooks.on_stopping\nonly with a new launch (stop it and run it again):\n  server.env\n"
	if out != want {
		t.Errorf("reload says\n%s\nwant\n%s", out, want)
	}
	if code, out, _ := s.sglaunch("reload", "glm"); code != exitOK || !strings.Contains(out, "server.env") || strings.Contains(out, "attempts") {
		t.Errorf("a second reload: %d %s", code, out)
	}

	s.edit("attempts = 9", "attempts = 0\nattempt = 3")
	if code, _, errout := s.sglaunch("reload"); code != 1 || !strings.HasPrefix(errout, `sglaunch: cannot reload "glm": all stays as it was: `) || !strings.Contains(errout, "relaunch.attempts") {
		t.Errorf("a reload with mistakes: %d %s", code, errout)
	}
	if err := syscall.Kill(before.Processes.Supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.eventually("a new supervisor answers", func() bool {
		now := s.status()
		return now.State == "up" && now.Ready && now.Processes.Supervisor != before.Processes.Supervisor
	})
	if now := s.status(); now.Processes.Server != before.Processes.Server {
		t.Errorf("the server was %d and is %d", before.Processes.Server, now.Processes.Server)
	}

	s.edit("attempts = 0\nattempt = 3", "attempts = 7")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.await(`reloaded: relaunch\.attempts from now on; server\.env only with a new launch`)
	if code, _, errout := s.sglaunch("stop", "--wait"); code != exitOK {
		t.Errorf("stop: %d %s", code, errout)
	}
	if hooks := hooksIn(t, heard); len(hooks) != 1 || hooks[0] != "on_stopping" {
		t.Errorf("the hooks were %q: the new one survives a supervisor", hooks)
	}
}

// Another program goes on in the supervisor's place and the server does not
// notice; one that does not work is taken back.
func TestUpgrade(t *testing.T) {
	s := startStanding(t, t.TempDir(), "glm", "")
	s.await(readyLine)
	before := s.status()
	newer := filepath.Join(s.dir, "sglaunch-2")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := copyProgram(self, newer); err != nil {
		t.Fatal(err)
	}
	code, out, errout := s.as(newer, "upgrade")
	if code != exitOK || !strings.Contains(out, "glm is supervised by "+newer) {
		t.Fatalf("upgrade: %d %s %s", code, out, errout)
	}
	after := s.status()
	if after.Processes.Server != before.Processes.Server || after.Processes.Shim != before.Processes.Shim || !after.Ready || !after.Announced {
		t.Errorf("the status was\n%+v\nand is\n%+v", before, after)
	}
	if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", after.Processes.Supervisor)); exe != newer {
		t.Errorf("the supervisor runs %q", exe)
	}
	if strings.Contains(string(s.stderr.bytes()), "the supervisor ended") {
		t.Errorf("an upgrade looks like a death:\n%s", s.stderr.bytes())
	}

	broken := filepath.Join(s.dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ask := func(program string, protocol int) error {
		_, err := serve.Ask(t.Context(), supervisor.Find(mustState(t, s.dir), "glm").Socket, serve.Request{
			Do: serve.DoUpgrade, Program: program, Protocol: protocol, Journal: journal.Version})
		return err
	}
	if err := ask(broken, wire.Version+1); err == nil || !strings.Contains(err.Error(), "speaks protocol") {
		t.Errorf("another protocol: %v", err)
	}
	if err := ask(filepath.Join(s.dir, "none"), wire.Version); err == nil || !strings.Contains(err.Error(), "there is no program") {
		t.Errorf("no program: %v", err)
	}
	if err := ask(broken, wire.Version); err != nil {
		t.Fatal(err)
	}
	s.await(`does not work here; the supervisor is the one before again`)
	s.eventually("the one before answers", func() bool {
		now := s.status()
		return now.State == "up" && now.Processes.Supervisor != after.Processes.Supervisor && now.Processes.Server == before.Processes.Server
	})
	if code, _, errout := s.sglaunch("stop", "--wait"); code != exitOK {
		t.Errorf("stop: %d %s", code, errout)
	}
}

// mustState is the state directory of a launch in dir.
func mustState(t *testing.T, dir string) statedir.Dir {
	t.Helper()
	t.Setenv("SGLAUNCH_STATE", filepath.Join(dir, "state"))
	state, err := statedir.Open()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}
