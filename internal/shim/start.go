package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
)

// start says how to start one process.
type start struct {
	argv    []string
	program string // the file to run; "" is found by argv[0]
	dir     string
	env     []string
	files   []*os.File // descriptors from 0 on; nil is /dev/null
	// newSession makes the process a session leader, with the terminal at
	// descriptor 1 as its own where terminal is set.
	newSession, terminal bool
	ownGroup             bool
	// diesWithUs has the kernel end the process when the shim is gone.
	diesWithUs bool
	oom        string // its oom_score_adj; "" leaves it
	side       proc.Side
	marker     string // NAME=value in env by which descendants are known
	cgroup     *proc.Cgroup
}

// startStarter returns the queue of the goroutine that starts processes. Its
// thread never ends: the kernel tells a child of the death of the *thread* that
// started it.
func startStarter() chan func() {
	queue := make(chan func(), 16)
	go func() {
		runtime.LockOSThread()
		for f := range queue {
			f()
		}
	}()
	return queue
}

// fork starts a process, places it in the tree and reports it before anybody
// can reap it. It runs on the starter's thread.
func (s *shim) fork(r start, report func(proc.Proc, error)) {
	s.forking.Lock()
	defer s.forking.Unlock()
	p, err := s.forkExec(r)
	if err == nil {
		s.tree.Put(p, r.side)
		if r.side == proc.Ours {
			s.sids, s.began, s.marker = map[int]bool{p.Session: true}, true, r.marker
		}
	}
	report(p, err)
}

func (s *shim) forkExec(r start) (proc.Proc, error) {
	path := r.program
	if path == "" {
		var err error
		if path, err = lookPath(r.argv, r.dir, r.env); err != nil {
			return proc.Proc{}, err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return proc.Proc{}, fmt.Errorf("cannot open %q: %w", os.DevNull, err)
	}
	defer null.Close()
	fds := make([]uintptr, len(r.files))
	for i, f := range r.files {
		if f == nil {
			f = null
		}
		fds[i] = uintptr(fdOf(f))
	}
	sys := &syscall.SysProcAttr{Setpgid: r.ownGroup, Setsid: r.newSession, Setctty: r.terminal, Ctty: 1}
	if r.diesWithUs {
		sys.Pdeathsig = syscall.SIGKILL
	}
	attr := &syscall.ProcAttr{Dir: r.dir, Env: r.env, Files: fds, Sys: sys}
	s.oom.become(r.oom) // before, not after: the child may fork at once
	pid, err := forkInto(r.cgroup, path, r.argv, attr)
	if err != nil {
		pid, err = syscall.ForkExec(path, r.argv, attr)
	}
	s.oom.become(s.oom.own)
	if err != nil {
		return proc.Proc{}, fmt.Errorf("cannot run %q: %w", path, err)
	}
	return proc.Identify(pid)
}

// lookPath finds a command as execvp does, with the PATH and in the folder that
// the command itself will have.
func lookPath(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("cannot run an empty command")
	}
	name := argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	var denied error
	for _, folder := range filepath.SplitList(getEnv(env, "PATH")) {
		if folder == "" {
			folder = "."
		}
		path := filepath.Join(folder, name)
		if !strings.Contains(path, "/") {
			path = "./" + path
		}
		seen := path
		if !filepath.IsAbs(path) {
			seen = filepath.Join(dir, path)
		}
		switch info, err := os.Stat(seen); {
		case err != nil || info.IsDir():
		case unix.Access(seen, unix.X_OK) != nil:
			denied = fmt.Errorf("cannot run %q: %w", path, unix.EACCES)
		default:
			return path, nil
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("cannot run %q: not found in PATH", name)
}

func getEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// setEnv returns env with one variable set.
func setEnv(env []string, name, value string) []string {
	return append(dropEnv(env, name), name+"="+value)
}

func dropEnv(env []string, name string) []string {
	kept := make([]string, 0, len(env)+1)
	for _, pair := range env {
		if !strings.HasPrefix(pair, name+"=") {
			kept = append(kept, pair)
		}
	}
	return kept
}
