package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"sglaunch/internal/eventually"
	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/supervisor"
)

// A reload that no supervisor hears is left with the shim, where a hangup means that
// to it; one that would end it is sent to nobody.
func TestReloadLater(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	alone := func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	atTerminal := func(cmd *exec.Cmd) error {
		terminal, err := pty.Start(cmd)
		if err == nil {
			t.Cleanup(func() { terminal.Close() })
		}
		return err
	}
	shim := func(start func(*exec.Cmd) error, script string) supervisor.Outside {
		cmd := exec.Command("/bin/sh", "-c", script)
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		p, err := proc.Identify(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return supervisor.Outside{Name: "glm", Shim: p.ID}
	}
	deaf := shim(alone, "while :; do sleep 0.1; done")
	if err := reloadLater(io.Discard, deaf, serve.ErrNobody); err == nil || !proc.Alive(deaf.Shim) {
		t.Errorf("one that a hangup ends: %v", err)
	}
	hears := shim(alone, "trap 'echo 1 >"+heard+"' HUP; while :; do sleep 0.1; done")
	eventually.True(t, "it has set its trap", func() bool { return proc.Catches(hears.Shim.PID, syscall.SIGHUP) })
	if err := reloadLater(io.Discard, hears, serve.ErrNobody); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it is told", func() bool { _, err := os.Stat(heard); return err == nil })

	ends := shim(atTerminal, "trap exit HUP; while :; do sleep 0.1; done")
	eventually.True(t, "it has set its trap", func() bool { return proc.Catches(ends.Shim.PID, syscall.SIGHUP) })
	if err := reloadLater(io.Discard, ends, serve.ErrNobody); err == nil {
		t.Error("one to which a hangup is a wish to end was sent it")
	}
}
