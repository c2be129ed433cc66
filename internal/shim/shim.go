package shim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// Exit statuses of the shim's own; all others come from the supervisor.
const (
	exitAgain   = 10 // trying again later may help: no supervisor could be kept alive
	exitPatched = 12 // a patch could not be reverted
	exitLeft    = 13 // processes would not go
)

// leastProcs is how many goroutines may be in the kernel at once before the runtime
// takes from those that are what they run Go code with, and they have to get it back:
// in a flood of output one reads the terminal while three write.
const leastProcs = 4

// Options says what a shim serves. Supervisor is required.
type Options struct {
	// Supervisor is the argv of the supervisor process: the own executable,
	// its hidden command and what the person asked for.
	Supervisor []string
	// Env is the supervisor's environment; nil means the shim's own.
	Env []string
	// Stdin, Stdout and Stderr are the person's; nil means the process's own.
	Stdin, Stdout, Stderr *os.File
	// Passthrough says what Stdout shows of the server's output: "raw" every
	// byte, "lines" bars as lines of their own, "off" nothing, "auto" or "" lines
	// in systemd's journal and else every byte.
	Passthrough string
	// Grace is the time between SIGTERM and SIGKILL where the shim has to end
	// the server alone; 0 means 60 s.
	Grace time.Duration
	// KillLimit bounds a kill that the shim does alone; 0 means 20 s.
	KillLimit time.Duration
	// FlushPatience is how long the end waits for a reader of standard output
	// that takes nothing; 0 means 30 s.
	FlushPatience time.Duration
	// FinishPatience is how long a supervisor may take to finish once the third
	// signal has ended the tree; 0 means 30 s.
	FinishPatience time.Duration
	// PingEvery is how often the supervisor is asked for a sign of life; 0 means
	// 5 s. Without one for 24 times it is replaced.
	PingEvery time.Duration
}

// withDefaults fills what is not set.
func (o Options) withDefaults() Options {
	file := func(f **os.File, own *os.File) {
		if *f == nil {
			*f = own
		}
	}
	file(&o.Stdin, os.Stdin)
	file(&o.Stdout, os.Stdout)
	file(&o.Stderr, os.Stderr)
	duration := func(d *time.Duration, usual time.Duration) {
		if *d <= 0 {
			*d = usual
		}
	}
	duration(&o.Grace, 60*time.Second)
	duration(&o.KillLimit, 20*time.Second)
	duration(&o.FlushPatience, 30*time.Second)
	duration(&o.FinishPatience, 30*time.Second)
	duration(&o.PingEvery, 5*time.Second)
	if o.Env == nil {
		o.Env = os.Environ()
	}
	return o
}

// shim is the state of the one loop. Only its goroutine touches it, but for
// what says otherwise.
type shim struct {
	o      Options
	events chan func() // what the other goroutines learnt, to be done in order
	facts  facts
	sup    supervisor
	srv    server
	end    ending
	code   int
	over   bool

	quiet     bool
	suspended bool
	out, err  *outlet // the same where both go to one place
	stdin     *stdin
	records   *recordFile
	notifier  *notifier
	oom       oomScores // the starter's
	starter   chan func()
	watchSoon bell

	// forking is held while a process is started and placed, so that nobody
	// reaps it or takes it for a stray before it is known. The loop never takes
	// it: to start a process may take as long as a disk hangs.
	forking sync.Mutex
	tree    *proc.Tree
	sids    map[int]bool // sessions of the server's tree
	began   bool         // a server was started
	marker  string       // of the newest attempt
	session int          // our own
	// strangers are below us too: what was here before, or whatever loses its
	// parents in our container.
	strangers bool
}

// Run serves one launch and returns the exit status of sglaunch. It takes the
// whole process: signals, children, descriptors; call it once, from main. It
// returns when nothing of the launch lives and everything is written.
func Run(o Options) int {
	debug.SetTraceback("crash") // a panic must not end with status 2, which means something else
	runtime.GOMAXPROCS(max(leastProcs, runtime.GOMAXPROCS(0)))
	s := &shim{o: o.withDefaults(), events: make(chan func(), 64), sids: map[int]bool{}, watchSoon: newBell()}
	if err := s.open(); err != nil {
		fmt.Fprintf(s.o.Stderr, "sglaunch: %v\n", err)
		return exitAgain
	}
	s.startSupervisor()
	s.after(s.o.PingEvery, s.feel)
	for !s.over {
		s.step(<-s.events)
	}
	return s.code
}

// step does one thing. A fault of ours in it is told and survived: the server
// must not die of it.
func (s *shim) step(f func()) {
	defer func() {
		if fault := recover(); fault != nil {
			s.say("internal error, please report it: %v\n%s", fault, debug.Stack())
		}
	}()
	f()
}

// open takes the process over.
func (s *shim) open() error {
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		return fmt.Errorf("cannot read /proc, which a launch needs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become the parent of orphans: %w", err)
	}
	s.session, s.strangers = self.Session, self.PID == 1
	s.facts.Hello = wire.Hello{Version: wire.Version, PID: self.PID, Start: self.Start, Terminal: hasTerminal()}
	s.tree = proc.NewTree(self.PID, s.judge)
	s.oom = lowerOOM()
	s.out = newOutlet(s.o.Stdout, "standard output", s.linesFor(s.o.Stdout), s.troubleLater)
	s.err = s.out
	if !sameFile(s.o.Stdout, s.o.Stderr) {
		s.err = newOutlet(s.o.Stderr, "standard error", s.linesFor(s.o.Stderr), s.troubleLater)
	}
	if _, _, err := s.tree.Scan(); err != nil { // what is here before us is not of the launch
		return err
	}
	s.starter = startStarter()
	s.stdin = copyStdin(s.o.Stdin)
	s.notifier = newNotifier()
	if every := watchdogEvery(); every > 0 {
		s.pet(every)
	}
	s.watchSignals()
	go s.reap()
	go s.watch()
	return nil
}

// do has the loop run f. Any goroutine may call it; the loop itself must not.
func (s *shim) do(f func()) { s.events <- f }

// after has the loop run f later.
func (s *shim) after(d time.Duration, f func()) { time.AfterFunc(d, func() { s.do(f) }) }

// say prints a line of the shim's own.
func (s *shim) say(format string, args ...any) {
	s.err.print("sglaunch: " + fmt.Sprintf(format, args...))
}

// trouble tells the supervisor, which decides what becomes of it, or the person
// where there is no supervisor.
func (s *shim) trouble(text string) {
	if s.sup.link != nil {
		s.send(wire.Message{Type: wire.Trouble, Attempt: s.facts.Attempt, Text: text})
		return
	}
	s.say("%s", text)
}

// send tells the supervisor; one that comes later learns from the Hello.
func (s *shim) send(m wire.Message) {
	if s.sup.link == nil {
		return
	}
	m.At = now()
	s.sup.link.send(m)
}

// reap collects every child that ends. It is the only caller of wait: the
// statuses of all children come by here, whoever started them.
func (s *shim) reap() {
	ended := childSignals()
	for range ended {
		for {
			var status syscall.WaitStatus
			s.forking.Lock()
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			s.forking.Unlock()
			if err == syscall.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			s.do(func() { s.reaped(pid, statusOf(status)) })
		}
	}
}

// reaped says whose end it was. Orphans of the server are only collected.
func (s *shim) reaped(pid int, status wire.Status) {
	switch {
	case s.sup.proc != nil && pid == s.sup.proc.PID:
		s.supervisorEnded(status)
	case s.facts.Server != nil && pid == s.facts.Server.PID && s.facts.Exited == nil:
		s.serverEnded(status)
	}
}

func statusOf(w syscall.WaitStatus) wire.Status {
	if w.Signaled() {
		return wire.Status{Code: 128 + int(w.Signal()), Signal: int(w.Signal()), Core: w.CoreDump()}
	}
	return wire.Status{Code: w.ExitStatus()}
}
