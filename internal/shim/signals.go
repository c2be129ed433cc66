package shim

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// heard are the signals that the shim acts on. One that was ignored when we
// were started (nohup, a background job) stays ignored, for the server too.
//
// SIGPIPE and SIGXFSZ are heard so that a closed terminal or a file limit is an
// error of a write; ignoring them would have the server ignore them too.
var heard = []os.Signal{
	unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
	unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE, unix.SIGXFSZ,
}

func (s *shim) watchSignals() {
	signals := make(chan os.Signal, 64)
	for _, sig := range heard {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	go func() {
		for sig := range signals {
			s.do(func() { s.signalled(sig.(syscall.Signal)) })
		}
	}()
}

// childSignals rings when children have ended, and once at the beginning.
func childSignals() chan os.Signal {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	select {
	case ended <- unix.SIGCHLD:
	default:
	}
	return ended
}

func (s *shim) signalled(sig syscall.Signal) {
	switch sig {
	case unix.SIGINT, unix.SIGTERM:
		s.asked(sig)
	case unix.SIGHUP:
		if s.facts.Terminal {
			s.asked(sig)
		} else {
			s.reload()
		}
	case unix.SIGQUIT:
		if s.orphaned() {
			s.signalServer(sig, wire.ScopeLeader)
		} else {
			s.asked(sig)
		}
	case unix.SIGUSR1, unix.SIGUSR2:
		s.signalServer(sig, wire.ScopeLeader)
	case unix.SIGWINCH:
		if !s.resize() {
			s.signalServer(sig, wire.ScopeLeader)
		}
	case unix.SIGTSTP:
		s.suspend()
	case unix.SIGCONT:
		s.resume()
	}
}

// orphaned reports whether somebody of the server's tree has become our child.
// SGLang's children send SIGQUIT to their parent when they fail, and a scheduler
// that lost its own early takes us for that. Without one it was a person's Ctrl-\.
func (s *shim) orphaned() bool {
	if s.facts.Server == nil {
		return false
	}
	for id := range s.srv.members {
		p, err := proc.Identify(id.PID)
		if err == nil && p.ID == id && p.PPID == os.Getpid() && id != idOf(s.facts.Server) {
			return true
		}
	}
	return false
}

// reload passes on the wish that launch.toml is read again. One that no supervisor
// has heard is kept for the next; a blind shim looks for one at once.
func (s *shim) reload() {
	s.sup.reload = true
	s.send(wire.Message{Type: wire.Asked, Sig: int(unix.SIGHUP)})
	s.tryAgain()
}

// asked passes a wish to end on to the supervisor. The third one the shim
// grants itself, whatever the supervisor does; the first one if it is blind.
func (s *shim) asked(sig syscall.Signal) {
	s.facts.asked(int(sig))
	s.send(wire.Message{Type: wire.Asked, Sig: int(sig)})
	s.end.wished = true
	if sig == unix.SIGHUP { // the terminal has vanished, which insists on nothing
		if s.sup.blind {
			s.stopAlone()
		}
		return
	}
	s.end.asks++
	switch {
	case s.end.flushing && s.end.asks > 1:
		s.leave() // whoever does not read has been waited for long enough
	case s.end.flushing:
		s.end.pressed.Store(true)
	case s.end.insists():
		s.grantKill()
		s.hurry()
	case s.sup.blind && s.end.asks > 1:
		s.grantKill()
	case s.sup.blind:
		s.stopAlone()
	}
}

// suspend stops the whole job, as Ctrl-Z does with a raw command: the server
// has a session of its own, where the terminal's SIGTSTP does not arrive.
func (s *shim) suspend() {
	if !jobControlled() {
		return
	}
	s.send(wire.Message{Type: wire.Suspended})
	s.signalServer(unix.SIGSTOP, wire.ScopeGroup) // no fork escapes that
	s.signalServer(unix.SIGSTOP, wire.ScopeTree)
	s.signalSupervisor(unix.SIGSTOP)
	s.suspended = true
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
}

// jobControlled reports whether a shell would continue us: whether our process
// group has a parent in our session. Without one the kernel stops nobody on
// Ctrl-Z either.
func jobControlled() bool {
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		return false
	}
	for p := self; ; {
		parent, err := proc.Identify(p.PPID)
		if err != nil || parent.Session != self.Session {
			return false
		}
		if parent.Group != self.Group {
			return true
		}
		p = parent
	}
}

func (s *shim) resume() {
	if !s.suspended {
		s.signalServer(unix.SIGCONT, wire.ScopeLeader)
		return
	}
	s.suspended = false
	s.signalSupervisor(unix.SIGCONT)
	s.signalServer(unix.SIGCONT, wire.ScopeTree)
	s.signalServer(unix.SIGCONT, wire.ScopeGroup)
	s.send(wire.Message{Type: wire.Resumed})
	s.resize()
}

func (s *shim) signalSupervisor(sig unix.Signal) {
	if p := s.sup.proc; p != nil {
		_ = proc.Send(p.ID, sig)
	}
}
