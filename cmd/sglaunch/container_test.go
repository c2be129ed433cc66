package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asFirst makes the test binary the first process of a container: it mounts the
// /proc of its namespace and becomes sglaunch.
const asFirst = "SGLAUNCH_TEST_FIRST"

func becomeFirst() {
	os.Unsetenv(asFirst)
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") // or the machine would see the next
	if err == nil {
		err = unix.Mount("proc", "/proc", "proc", 0, "")
	}
	if err != nil {
		os.Stderr.WriteString("cannot mount /proc: " + err.Error() + "\n")
		os.Exit(99)
	}
	err = unix.Exec("/proc/self/exe", os.Args, os.Environ())
	os.Stderr.WriteString("cannot become sglaunch: " + err.Error() + "\n")
	os.Exit(99)
}

// inContainer runs sglaunch as process 1 of a namespace of its own. It returns nil
// where the system permits nobody to make one.
func inContainer(t *testing.T, args ...string) *launched {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &launched{t: t, cmd: exec.Command(self, args...), done: make(chan struct{})}
	l.cmd.Env = append(os.Environ(), asFirst+"=1", "SGLAUNCH_STATE="+filepath.Join(t.TempDir(), "state"))
	l.cmd.Stdout, l.cmd.Stderr = &l.stdout, &l.stderr
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		l.cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		l.cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		l.cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := l.cmd.Start(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) {
			t.Logf("no namespace may be made here: %v", err)
			return nil
		}
		t.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait() // the exit code says it
		close(l.done)
	}()
	t.Cleanup(func() { _ = l.cmd.Process.Kill(); <-l.done })
	return l
}

// orphans leaves forty processes without parents, then waits until no zombie is
// to be seen.
const orphans = `
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  (sleep 0.1 &)
  (setsid sh -c 'sleep 0.1; exit 3' &)
done
sleep 0.3
for i in $(seq 100); do
  zombies=$(cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z')
  [ "$zombies" = 0 ] && break
  sleep 0.1
done
echo "zombies $zombies, I am $$ of 1 $(tr '\0' ' ' < /proc/1/cmdline | cut -d ' ' -f 2)"
exit 7`

// As process 1 of a container sglaunch collects whoever lost his parents, and is
// ended as every other program is.
func TestFirstProcess(t *testing.T) {
	t.Parallel()
	l := inContainer(t, "run", "--", "sh", "-c", orphans)
	if l == nil {
		return
	}
	code := l.wait()
	out := string(l.stdout.bytes())
	if code != 7 || !strings.Contains(out, "zombies 0,") || !strings.Contains(out, "of 1 run") {
		t.Errorf("exit code %d, output %q\n%s", code, out, l.stderr.bytes())
	}
	stopped := inContainer(t, "run", "--stop.grace=1s", "--", "sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000; :")
	stopped.await(`server is process`)
	stopped.signal(syscall.SIGTERM)
	if code := stopped.wait(); code != exitOK {
		t.Errorf("stopped with exit code %d\n%s", code, stopped.stderr.bytes())
	}
}
