package shim_test

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"sglaunch/internal/proc"
)

// rawCommand is what a person would have typed, without a launcher.
func rawCommand(dir string, out *sink, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, withoutRole()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func contextFor(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func stateOf(pid int) byte {
	p, err := proc.Identify(pid)
	if err != nil {
		return 'X'
	}
	return p.State
}
