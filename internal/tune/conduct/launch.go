package conduct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/plain"
	"sglaunch/internal/proc"
	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor"
)

// Launch is an `sglaunch run` of the night, started by this tuner or found by
// its name. It is watched through its control socket; its records say how it
// went. Its methods may be called from any goroutine.
type Launch struct {
	Name   string
	state  statedir.Dir
	shim   proc.ID
	gone   chan struct{} // closed when the shim has ended
	code   int           // valid when gone, of one that we started; else -1
	tries  bool          // it tries again by itself: only its end is the end
	over   chan struct{} // closed when the server does not serve any more, or never will
	ready  chan struct{} // closed when it was announced
	change sync.Once
	begin  sync.Once

	mu     sync.Mutex
	status serve.Status // the newest that was told
	why    string       // it is over
}

// program is how a launch is started.
type program struct {
	argv   []string // sglaunch itself
	config string   // launch.toml
	log    string   // file for sglaunch's own lines; "": they and the server's output go where ours go
	env    []string // complete
}

// outputs opens where a launch writes to. The output of a trial's server is in
// the attempt's log alone.
func (p program) outputs() (stdout, stderr *os.File, done func(), err error) {
	if p.log == "" {
		return os.Stdout, os.Stderr, func() {}, nil
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, statedir.FileMode)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cannot keep the launch's output: %w", err)
	}
	return nil, log, func() { _ = log.Close() }, nil
}

// startLaunch starts `sglaunch run` in a session of its own: neither Ctrl-C nor
// the end of a terminal reaches it but through us.
func startLaunch(name string, state statedir.Dir, p program, tries bool) (*Launch, error) {
	stdout, stderr, done, err := p.outputs()
	if err != nil {
		return nil, err
	}
	defer done()
	cmd := exec.Command(p.argv[0], append(p.argv[1:len(p.argv):len(p.argv)], "run", "-c", p.config)...)
	if cmd.Env, cmd.Stderr = p.env, stderr; stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start sglaunch: %w", plain.Error(err))
	}
	id := proc.ID{PID: cmd.Process.Pid}
	if p, err := proc.Identify(id.PID); err == nil { // it is our child: nobody else has its number
		id = p.ID
	}
	l := newLaunch(name, state, id, tries)
	go func() {
		_ = cmd.Wait() // the code says it
		l.code = cmd.ProcessState.ExitCode()
		close(l.gone)
	}()
	go l.follow()
	return l, nil
}

// findLaunch takes up a launch that lives; nil: none of that name does.
func findLaunch(name string, state statedir.Dir, tries bool) *Launch {
	o := supervisor.Find(state, name)
	if o.Shim.PID == 0 {
		return nil
	}
	l := newLaunch(name, state, o.Shim, tries)
	go func() {
		_ = proc.AwaitEnd(context.Background(), l.shim) // it has no other end
		close(l.gone)
	}()
	go l.follow()
	return l
}

func newLaunch(name string, state statedir.Dir, id proc.ID, tries bool) *Launch {
	return &Launch{
		Name: name, state: state, shim: id, code: -1, tries: tries,
		gone: make(chan struct{}), over: make(chan struct{}), ready: make(chan struct{}),
	}
}

// follow listens to the launch until it has ended. A supervisor that is not
// there yet, or being replaced, is asked again.
func (l *Launch) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-l.gone
		cancel()
	}()
	for ctx.Err() == nil {
		socket := supervisor.Find(l.state, l.Name).Socket
		_ = serve.Watch(ctx, socket, func(_ []byte, s *serve.Status, e *serve.Envelope) error {
			l.hear(s, e)
			return nil
		})
		wait(ctx, 50*time.Millisecond)
	}
	l.end("the launch has ended")
}

// hear takes one piece of news. A launch of that name that is not ours has
// another shim: its news are not ours either.
func (l *Launch) hear(s *serve.Status, e *serve.Envelope) {
	if s != nil {
		if s.Processes.Shim != l.shim.PID {
			return
		}
		l.mu.Lock()
		l.status = *s
		l.mu.Unlock()
		if s.Announced {
			l.announce()
		}
		if s.Stop != nil || s.Failed != nil && !l.tries || s.Exit != nil {
			l.end(s.Text)
		}
		return
	}
	if l.ID() == "" {
		return
	}
	acted, _ := e.Fields["acted"].(bool)
	switch {
	case e.Event == "announced":
		l.announce()
	case e.Event == "gave_up", e.Event == "launch_ended",
		!l.tries && (e.Event == "stopping" || e.Event == "attempt_ended" || e.Event == "verdict" && acted):
		l.end(e.Text)
	}
}

func (l *Launch) announce() { l.begin.Do(func() { close(l.ready) }) }

func (l *Launch) end(why string) {
	l.change.Do(func() {
		l.mu.Lock()
		l.why = why
		l.mu.Unlock()
		close(l.over)
	})
}

// exit is the exit code of a launch that we started and that has ended by
// itself; false where there is none.
func (l *Launch) exit() (code int, ok bool) {
	select {
	case <-l.gone:
		return l.code, l.code >= 0
	default:
		return 0, false
	}
}

// ID is the launch's folder; "" as long as it has not told.
func (l *Launch) ID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status.ID
}

// Why says in the launch's own words why it is over.
func (l *Launch) Why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// errOver says that the server has stopped serving.
var errOver = errors.New("the server does not serve any more")

// Serving is a context that ends when the server does not serve any more.
func (l *Launch) Serving(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case <-l.over:
			cancel(fmt.Errorf("%w: %s", errOver, l.Why()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Stop ends the launch in order and returns when its shim has ended; false
// when it would not within limit, though asked three times.
func (l *Launch) Stop(by string, limit time.Duration) bool {
	for i := range 3 {
		l.ask(by, i > 0)
		timer := time.NewTimer(limit)
		select {
		case <-l.gone:
			timer.Stop()
			return true
		case <-timer.C:
		}
	}
	return false
}

// ask asks for the end by the socket; where nobody answers, by a signal.
func (l *Launch) ask(by string, force bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	socket := supervisor.Find(l.state, l.Name).Socket
	if _, err := serve.Ask(ctx, socket, serve.Request{Do: serve.DoStop, Force: force, By: by}); err != nil {
		_ = proc.Send(l.shim, unix.SIGTERM) // it has ended, or it hears this
	}
}

const askLimit = 3 * time.Second
