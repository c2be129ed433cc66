package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"sglaunch/internal/eventually"
)

// A child that was not waited for tells how it ended.
func TestExitStatusOfZombie(t *testing.T) {
	for _, c := range []struct {
		script string
		check  func(syscall.WaitStatus) bool
	}{
		{"exit 3", func(s syscall.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 3 }},
		{"kill -9 $$", func(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGKILL }},
		{"kill -11 $$", func(s syscall.WaitStatus) bool { return s.Signaled() && s.Signal() == syscall.SIGSEGV }},
	} {
		cmd := exec.Command("/bin/sh", "-c", c.script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var s syscall.WaitStatus
		eventually.True(t, "a status of "+c.script, func() (ok bool) { s, ok = ExitStatus(cmd.Process.Pid); return ok })
		if !c.check(s) {
			t.Errorf("%s: status %#x", c.script, s)
		}
		_ = cmd.Wait()
	}
	if _, ok := ExitStatus(os.Getpid()); ok {
		t.Error("a living process has a status")
	}
}
