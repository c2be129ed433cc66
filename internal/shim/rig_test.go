package shim_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/eventually"
	"sglaunch/internal/proc"
	"sglaunch/internal/shim"
	"sglaunch/internal/shim/wire"
)

// The tests run the real thing: this binary, started again, is the shim; a
// third copy is the supervisor's process, which passes what the shim says on to
// the test over a socket. So a test speaks the supervisor's part itself, and
// killing the third process is killing the supervisor.
const (
	roleVar    = "SHIM_TEST_ROLE"
	socketVar  = "SHIM_TEST_SOCKET"
	optionsVar = "SHIM_TEST_OPTIONS"
)

// patience is as long as a busy machine may need; what works takes a moment.
const patience = time.Minute

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		_ = flag.Set("rapid.checks", "25")                                 // megabytes each
		_ = os.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE")) // a second at each end, by default
		os.Exit(m.Run())
	case "shim":
		os.Exit(runShim())
	case "supervisor":
		os.Exit(relay())
	case "dies":
		os.Exit(3)
	default:
		os.Exit(play(role, os.Args[1:]))
	}
}

// durations are the options of a shim that a test sets.
type durations struct{ Grace, KillLimit, FlushPatience, FinishPatience, PingEvery time.Duration }

func runShim() int {
	var d durations
	_ = json.Unmarshal([]byte(os.Getenv(optionsVar)), &d)
	role := "supervisor"
	if os.Getenv(socketVar) == "" {
		role = "dies"
	}
	return shim.Run(shim.Options{
		Supervisor: []string{self()},
		Env:        append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, roleVar+"=") }), roleVar+"="+role),
		Grace:      d.Grace, KillLimit: d.KillLimit, FlushPatience: d.FlushPatience, FinishPatience: d.FinishPatience,
		PingEvery: d.PingEvery,
	})
}

// relay is the supervisor's process: it tells the test its pid and passes
// everything on. It ends when either side does.
func relay() int {
	unix.CloseOnExec(wire.FD)
	link := os.NewFile(wire.FD, "shim")
	test, err := net.Dial("unix", os.Getenv(socketVar))
	if err != nil {
		return 4
	}
	hooks := make(chan os.Signal, 1)
	signal.Notify(hooks, unix.SIGUSR1)
	go func() {
		for range hooks { // starts what a hook would, and leaves it alone
			cmd := exec.Command("sh", "-c", "setsid sleep 1000 & exit")
			cmd.Env = append(os.Environ(), "SHIM_TEST_HOOK=1")
			_ = cmd.Run()
		}
	}()
	fmt.Fprintf(test, "%08d", os.Getpid())
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(test, link); done <- struct{}{} }()
	go func() { _, _ = io.Copy(link, test); done <- struct{}{} }()
	<-done
	return 0
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// rig is a running shim.
type rig struct {
	t              *testing.T
	dir            string
	cmd            *exec.Cmd
	stdout, stderr *sink
	listener       net.Listener
	status         chan int
}

type rigOptions struct {
	durations
	stdin          *os.File
	stdout, stderr *os.File // instead of the sinks
	env            []string
	alone          bool // no supervisor that lives
	attr           *syscall.SysProcAttr
	wrap           []string // a command that runs the shim
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), stdout: newSink(), stderr: newSink(), status: make(chan int, 1)}
	argv := append(slices.Clone(o.wrap), self())
	r.cmd = exec.Command(argv[0], argv[1:]...)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = o.stdin, r.stdout, r.stderr
	if o.stdout != nil {
		r.cmd.Stdout = o.stdout
	}
	if o.stderr != nil {
		r.cmd.Stderr = o.stderr
	}
	options, _ := json.Marshal(o.durations)
	r.cmd.Env = append(os.Environ(), roleVar+"=shim", optionsVar+"="+string(options))
	if !o.alone {
		socket := filepath.Join(r.dir, "s")
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		r.listener = listener
		t.Cleanup(func() { listener.Close() })
		r.cmd.Env = append(r.cmd.Env, socketVar+"="+socket)
	}
	r.cmd.Env = append(r.cmd.Env, o.env...)
	r.cmd.SysProcAttr = o.attr
	r.cmd.WaitDelay = 5 * time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait()
		status := r.cmd.ProcessState.ExitCode()
		if status < 0 {
			status = 128 + int(r.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		}
		r.status <- status
	}()
	t.Cleanup(r.clean)
	return r
}

// clean leaves nothing behind, whatever a test did.
func (r *rig) clean() {
	if r.t.Failed() {
		r.t.Logf("standard error of the shim:\n%s", r.stderr.text())
	}
	procs, _ := proc.Descendants(r.pid())
	_ = r.cmd.Process.Kill()
	for _, p := range procs {
		_ = proc.Send(p.ID, unix.SIGKILL)
	}
}

func (r *rig) pid() int { return r.cmd.Process.Pid }

func (r *rig) signal(sig unix.Signal) {
	if err := unix.Kill(r.pid(), sig); err != nil {
		r.t.Errorf("cannot signal the shim: %v", err)
	}
}

// exit waits for the shim's exit status.
func (r *rig) exit() int {
	r.t.Helper()
	select {
	case status := <-r.status:
		r.status <- status
		return status
	case <-time.After(patience):
		r.t.Fatalf("the shim has not ended within %v", patience)
		return -1
	}
}

// supervisor waits until the shim has started a supervisor, whose part the test
// then plays.
func (r *rig) supervisor() *part {
	r.t.Helper()
	_ = r.listener.(*net.UnixListener).SetDeadline(time.Now().Add(patience))
	conn, err := r.listener.Accept()
	if err != nil {
		r.t.Fatalf("no supervisor came: %v", err)
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(conn, head); err != nil {
		r.t.Fatal(err)
	}
	p := &part{rig: r, conn: wire.NewConn(conn), changed: make(chan struct{}, 1)}
	p.pid, _ = strconv.Atoi(strings.TrimLeft(string(head), "0"))
	r.t.Cleanup(func() { conn.Close() })
	go p.listen()
	p.hello = *p.await(wire.Welcome).Hello
	return p
}

// spec is how to start a server of the test's; argv runs as it is.
func (r *rig) spec(attempt int, argv ...string) wire.Spec {
	return wire.Spec{
		Attempt: attempt, Argv: argv, Dir: r.dir, Env: withoutRole(), Stdio: "pty", Stdin: "auto",
		Log: r.path("server%d.log", attempt), Records: r.path("records%d", attempt),
		Marker: "SHIM_TEST_MARK=" + filepath.Base(r.dir) + strconv.Itoa(attempt), Drain: wire.Duration(2 * time.Second),
	}
}

// role is the environment of a server that this binary plays.
func role(name string) []string { return append(withoutRole(), roleVar+"="+name) }

func withoutRole() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "SHIM_TEST_") || strings.HasPrefix(v, "SGLAUNCH_")
	})
}

func (r *rig) path(format string, args ...any) string {
	return filepath.Join(r.dir, fmt.Sprintf(format, args...))
}

func (r *rig) log(attempt int) []byte {
	text, err := os.ReadFile(r.path("server%d.log", attempt))
	if err != nil {
		r.t.Error(err)
	}
	return text
}

// part is the supervisor's, played by a test.
type part struct {
	*rig
	conn    *wire.Conn
	pid     int // of the supervisor's process
	hello   wire.Hello
	changed chan struct{}

	mu       sync.Mutex
	messages []wire.Message
	output   []byte
	from     int64 // offset of output[0]
	torn     bool  // an output frame that does not follow the one before
	over     bool
}

func (p *part) listen() {
	for {
		m, out, err := p.conn.Receive()
		p.mu.Lock()
		switch {
		case err != nil:
			p.over = true
		case m != nil:
			p.messages = append(p.messages, *m)
		default:
			if len(p.output) == 0 {
				p.from = out.Offset
			}
			p.torn = p.torn || out.Offset != p.from+int64(len(p.output))
			p.output = append(p.output, out.Data...)
		}
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits for a condition on what has been received; the lock is held.
func (p *part) until(what string, ok func() bool) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		p.mu.Lock()
		yes, over := ok(), p.over
		p.mu.Unlock()
		if yes {
			return
		}
		if over {
			p.t.Fatalf("the shim hung up before %s", what)
		}
		select {
		case <-p.changed:
		case <-limit:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("no %s within 30s; messages: %+v; %d bytes of output", what, p.messages, len(p.output))
		}
	}
}

// await returns the first message of a type that was not awaited before.
func (p *part) await(kind string) (found wire.Message) {
	p.t.Helper()
	p.until(kind, func() bool {
		for i, m := range p.messages {
			if m.Type == kind {
				found = m
				p.messages = slices.Delete(p.messages, i, i+1)
				return true
			}
		}
		return false
	})
	return found
}

// has reports whether a message of a type has come that was not awaited yet.
func (p *part) has(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.messages, func(m wire.Message) bool { return m.Type == kind })
}

func (p *part) send(m wire.Message) {
	p.t.Helper()
	if err := p.conn.Send(m); err != nil {
		p.t.Errorf("cannot send %s: %v", m.Type, err)
	}
}

// spawn starts a server and has its output streamed.
func (p *part) spawn(spec wire.Spec) wire.Proc {
	p.t.Helper()
	p.send(wire.Message{Type: wire.Spawn, Spec: &spec})
	m := p.await(wire.Spawned)
	p.send(wire.Message{Type: wire.Stream, Attempt: spec.Attempt})
	return *m.Proc
}

func (p *part) finish(code int) {
	p.t.Helper()
	p.send(wire.Message{Type: wire.Finish, Code: code})
}

func (p *part) kill(attempt int) {
	p.t.Helper()
	p.send(wire.Message{Type: wire.Kill, Attempt: attempt, Limit: wire.Duration(15 * time.Second)})
}

// awaitOutput waits until the output contains a text.
func (p *part) awaitOutput(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("output %q", text), func() bool { return bytes.Contains(p.output, []byte(text)) })
}

func (p *part) received() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.output)
}

// die kills the supervisor as kill -9 does.
func (p *part) die() {
	_ = unix.Kill(p.pid, unix.SIGKILL)
}

// hangUp ends the supervisor once all that the test has sent has reached the
// shim.
func (p *part) hangUp() { p.conn.Close() }

// sink collects what a process writes.
type sink struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

func newSink() *sink { return &sink{changed: make(chan struct{}, 1)} }

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *sink) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.b.Bytes())
}

func (s *sink) text() string { return string(s.bytes()) }

func (s *sink) await(t *testing.T, text string) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%q to be written", text), func() bool { return strings.Contains(s.text(), text) })
}
