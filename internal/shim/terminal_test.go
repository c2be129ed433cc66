package shim_test

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
	"sglaunch/internal/shim/wire"
)

// person sits at a real terminal: master is her keyboard, screen what she sees.
func person(t *testing.T) (o rigOptions, master *os.File, screen *sink) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 33, Cols: 111}); err != nil {
		t.Fatal(err)
	}
	screen = newSink()
	go func() { _, _ = io.Copy(screen, master) }()
	t.Cleanup(func() { slave.Close(); master.Close() })
	// Her shell ignores no key, whoever started these tests: a handler here is the
	// default in what is begun now.
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP)
	t.Cleanup(func() { signal.Stop(keys) })
	return rigOptions{
		stdin: slave, stdout: slave, stderr: slave,
		attr: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
	}, master, screen
}

func TestTypedBytesAndSizeReachTheServer(t *testing.T) {
	o, master, screen := person(t)
	r := newRig(t, o)
	p := r.supervisor()
	p.spawn(r.spec(1, "python3", "-c", `
import os,signal,sys
def size(): print("size", *os.get_terminal_size(1), flush=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH]) # a handler may come too late for input()
size()
print("tty", os.isatty(0), flush=True)
signal.sigwait([signal.SIGWINCH])
size()
print("got", input(), flush=True)
print("end", repr(sys.stdin.read()), flush=True)
`))
	p.awaitOutput("size 111 33\n")
	p.awaitOutput("tty True\n")
	if err := pty.Setsize(master, &pty.Winsize{Rows: 44, Cols: 122}); err != nil {
		t.Fatal(err)
	}
	p.awaitOutput("size 122 44\n")
	if _, err := master.WriteString("typed\n"); err != nil {
		t.Fatal(err)
	}
	p.awaitOutput("got typed\n")
	if _, err := master.WriteString("\x04"); err != nil {
		t.Fatal(err)
	}
	p.awaitOutput("end ''\n")
	p.await(wire.Drained)
	p.finish(0)
	r.exit()
	if text := screen.text(); strings.Count(text, "typed") != 2 { // the terminal's echo and the server's answer
		t.Errorf("screen: %q", text)
	}
}

// Ctrl-C and Ctrl-\ are wishes to the supervisor, not signals to the server.
func TestControlC(t *testing.T) {
	o, master, _ := person(t)
	r := newRig(t, o)
	p := r.supervisor()
	p.spawn(r.spec(1, "sh", "-c", "echo up; exec sleep 1000"))
	p.awaitOutput("up")
	for key, sig := range map[string]unix.Signal{"\x03": unix.SIGINT, "\x1c": unix.SIGQUIT} {
		if _, err := master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		if m := p.await(wire.Asked); m.Sig != int(sig) {
			t.Errorf("asked: %+v", m)
		}
	}
	p.finish(0)
	r.exit()
}

// Ctrl-Z stops all three, and fg continues all three.
func TestControlZ(t *testing.T) {
	o, master, _ := person(t)
	o.wrap = []string{"python3", "-c", `
import os, signal, sys
# A shell with job control, of one job.
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        sys.exit(os.waitstatus_to_exitcode(status))
`}
	r := newRig(t, o)
	p := r.supervisor()
	spec := r.spec(1, self())
	spec.Env = role("ticker")
	server := p.spawn(spec)
	p.awaitOutput("line 0000010")
	if _, err := master.WriteString("\x1a"); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.hello.PID, server.PID, p.pid} {
		eventually.True(t, "a stopped process", func() bool { return stateOf(pid) == 'T' })
	}
	_ = unix.Kill(p.hello.PID, unix.SIGCONT)
	for _, pid := range []int{p.hello.PID, server.PID, p.pid} {
		eventually.True(t, "a running process", func() bool { return stateOf(pid) != 'T' })
	}
	p.await(wire.Suspended)
	p.await(wire.Resumed)
	p.finish(0)
	r.exit()
}

// Where no shell could continue us, Ctrl-Z stops nobody, as the kernel has it.
func TestControlZWithoutAShell(t *testing.T) {
	o, master, _ := person(t)
	r := newRig(t, o)
	p := r.supervisor()
	spec := r.spec(1, self())
	spec.Env = role("signals")
	p.spawn(spec)
	p.awaitOutput("listening")
	if _, err := master.WriteString("\x1a"); err != nil {
		t.Fatal(err)
	}
	r.signal(unix.SIGUSR1) // arrives after it
	p.awaitOutput("heard user defined signal 1")
	p.finish(0)
	r.exit()
}

// On one terminal our lines stand between the server's lines, never in one, and
// do not wait for ever behind a bar.
func TestOwnLinesStandAlone(t *testing.T) {
	o, _, screen := person(t)
	r := newRig(t, o)
	p := r.supervisor()
	p.spawn(r.spec(1, "python3", "-u", "-c", `
import sys,time
sys.stdout.write("half ")
time.sleep(0.4)
sys.stdout.write("line\n")
for i in range(400):
    sys.stdout.write("\rbar %3d%%" % (i//4)); time.sleep(0.02)
time.sleep(1000)
`))
	p.awaitOutput("half ")
	p.send(wire.Message{Type: wire.Print, Text: "sglaunch: first"})
	p.awaitOutput("line\n")
	screen.await(t, "half line\r\nsglaunch: first\r\n")
	p.awaitOutput("bar   2%")
	began := time.Now()
	p.send(wire.Message{Type: wire.Print, Text: "sglaunch: second"})
	screen.await(t, "%\r\nsglaunch: second\r\n\rbar")
	if d := time.Since(began); d > 7*time.Second {
		t.Errorf("the line waited for %v", d)
	}
	p.finish(0)
	r.exit()
}

func TestQuiet(t *testing.T) {
	r := newRig(t, rigOptions{})
	p := r.supervisor()
	p.send(wire.Message{Type: wire.Print, Text: "one"})
	p.send(wire.Message{Type: wire.Quiet, Off: true})
	p.send(wire.Message{Type: wire.Print, Text: "two"})
	p.send(wire.Message{Type: wire.Quiet})
	p.send(wire.Message{Type: wire.Print, Text: "three\nfour\n"})
	p.finish(0)
	r.exit()
	same(t, "standard error", r.stderr.bytes(), []byte("one\nthree\nfour\n"))
}
