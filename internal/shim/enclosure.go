package shim

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// notePatience is how long the note about a cgroup may take before the server is
// started without it.
const notePatience = time.Second

// enclose makes a cgroup for the server where that is permitted. It is noted
// beside the records before anybody is in it: should we die, whoever ends the
// rest finds even those that nobody has seen. Where there can be none the other
// signs have to do, and nobody needs to hear of it.
func (s *shim) enclose(spec wire.Spec) *proc.Cgroup {
	name := fmt.Sprintf("sglaunch-%d-%d-%d", s.facts.PID, s.facts.Start, spec.Attempt)
	cgroup, why := proc.NewCgroup(name)
	if spec.Records == "" {
		return cgroup
	}
	noted := make(chan struct{})
	go func() { // a disk may hang
		defer close(noted)
		_ = proc.NoteCgroup(spec.Records, cgroup, why)
	}()
	awaitClose(noted, notePatience)
	return cgroup
}

// forkInto starts a process in a cgroup, where there is one, so that it never was
// anywhere else. Kernels before 5.7 cannot, nor can a sandbox that knows no
// clone3, nor can anybody after the cgroup was taken away.
func forkInto(c *proc.Cgroup, path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	if c == nil {
		return 0, errors.ErrUnsupported
	}
	folder, err := c.Open()
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	sys := *attr.Sys
	sys.UseCgroupFD, sys.CgroupFD = true, fdOf(folder)
	inside := *attr
	inside.Sys = &sys
	return syscall.ForkExec(path, argv, &inside)
}
