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

// enclose makes a cgroup for the server where that is permitted. Where there can
// be none the other signs have to do, and nobody needs to hear of it. It is noted
// beside the records before it is there: should we die, whoever ends the rest
// finds even those that nobody has seen.
func (s *shim) enclose(spec wire.Spec) *proc.Cgroup {
	cgroup, err := proc.PlanCgroup(fmt.Sprintf("sglaunch-%d-%d-%d", s.facts.PID, s.facts.Start, spec.Attempt))
	noteCgroup(spec.Records, cgroup, err)
	if err != nil {
		return nil
	}
	if err := cgroup.Make(); err != nil {
		noteCgroup(spec.Records, nil, err)
		return nil
	}
	return cgroup
}

// noteCgroup does not wait for a disk that hangs.
func noteCgroup(records string, c *proc.Cgroup, why error) {
	if records == "" {
		return
	}
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		_ = proc.NoteCgroup(records, c, why)
	}()
	awaitClose(noted, notePatience)
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
