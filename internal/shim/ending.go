package shim

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/shim/wire"
)

const (
	asksToKill = 3 // SIGINT or SIGTERM so often: no more waiting
	hurriesMax = 2 // supervisors that are given the time to finish after that
	exitWait   = 5 * time.Second
	sealWait   = 5 * time.Second

	// askedPatience is FlushPatience once somebody asks for the end meanwhile: who
	// reads still goes on reading.
	askedPatience = time.Second
)

// ending is how far the end of the launch has come.
type ending struct {
	finish     *wire.Message // the decision, and the exit status
	asks       int           // SIGINT and SIGTERM so far
	wished     bool          // one of them, or the terminal has vanished
	hurries    int
	lastChance bool // the supervisor that runs now is the last one
	killed     bool // the end's own kill has been tried
	flushing   bool
	pressed    atomic.Bool   // the end was asked for while we flush
	gone       chan struct{} // closed when no supervisor runs any more
}

func (e *ending) insists() bool { return e.asks >= asksToKill }

// finish begins the end. What is alive is killed, what is written is flushed.
func (s *shim) finish(m wire.Message) {
	if s.end.finish != nil {
		return
	}
	s.end.finish, s.code = &m, m.Code
	if m.Text != "" {
		s.print(m.Text)
	}
	s.advanceEnding()
}

// finishAlone ends the launch without a supervisor's word.
func (s *shim) finishAlone() {
	code := exitAgain
	if s.end.wished {
		code = 0
	}
	if s.facts.Lease != "" {
		code = exitPatched
		s.say("a patch is still applied (%s): run \"sglaunch recover\"", s.facts.Lease)
	}
	s.finish(wire.Message{Type: wire.Finish, Code: code})
}

// advanceEnding takes the next step of the end, if its turn has come.
func (s *shim) advanceEnding() {
	e, f := &s.end, &s.facts
	attempted := f.Attempt > 0
	switch {
	case e.finish == nil, s.srv.starting, s.srv.killing, e.flushing:
	case attempted && !f.TreeGone && !e.killed:
		e.killed = true
		s.kill(s.o.KillLimit)
	case attempted && !f.Drained:
	default:
		e.flushing = true
		if attempted && !f.TreeGone {
			s.code = exitLeft
			for _, p := range s.srv.left {
				s.say("process %d would not end: %s, %s", p.PID, p.State, p.Cmd)
			}
		}
		s.letSupervisorGo()
		go s.flush()
	}
}

// letSupervisorGo closes the link, which tells a supervisor that has said
// Finish that all is done. It may take a moment to end by itself.
func (s *shim) letSupervisorGo() {
	if s.sup.link != nil {
		s.sup.link.close()
		s.sup.link = nil
	}
	s.end.gone = make(chan struct{})
	if s.sup.proc == nil {
		close(s.end.gone)
	}
}

// flush waits until everything is written, or until a reader has taken nothing
// for a long time.
func (s *shim) flush() {
	if !awaitClose(s.end.gone, exitWait) {
		s.do(func() { s.signalSupervisor(unix.SIGKILL) })
	}
	if sp := s.srv.spool; sp != nil {
		awaitClose(sp.sealed, sealWait)
		if s.srv.copied != nil {
			awaitClose(s.srv.copied, sealWait)
		}
	}
	for _, o := range []*outlet{s.out, s.err} {
		o.stop()
		if !o.awaitEnd(s.flushPatience) && o != s.err {
			s.say("%d bytes of output are missing on %s, which took nothing for %s; see the log", o.unread(), o.name, s.flushPatience())
		}
	}
	s.do(s.leave)
}

// flushPatience is how long a reader may take nothing. Any goroutine may ask.
func (s *shim) flushPatience() time.Duration {
	if s.end.pressed.Load() {
		return min(s.o.FlushPatience, askedPatience)
	}
	return s.o.FlushPatience
}

func (s *shim) leave() { s.over = true }

// hurry gives the supervisor a last time to finish, now that the tree is being
// killed. One that hangs is replaced, once.
func (s *shim) hurry() {
	if s.end.hurries > 0 {
		return
	}
	s.end.hurries = 1
	s.after(s.o.FinishPatience, s.outOfPatience)
}

func (s *shim) outOfPatience() {
	if s.end.finish != nil {
		return
	}
	if s.end.hurries++; s.end.hurries > hurriesMax {
		s.say("the supervisor does not finish; the launch ends without it")
		s.finishAlone()
		return
	}
	s.signalSupervisor(unix.SIGKILL)
	s.after(s.o.FinishPatience, s.outOfPatience)
}

// grantKill ends the server at once, as was asked for.
func (s *shim) grantKill() {
	s.grant()
	s.kill(s.o.KillLimit)
}

// grant notes that a living server ends of our own doing: to the next supervisor
// its end would look like somebody else's.
func (s *shim) grant() { s.facts.Granted = s.facts.Granted || s.serverLives() || s.srv.starting }

// stopAlone ends the server without a supervisor: SIGTERM, a grace, SIGKILL.
func (s *shim) stopAlone() {
	if !s.serverLives() {
		s.finishAlone()
		return
	}
	s.grant()
	s.signalServer(unix.SIGTERM, wire.ScopeLeader)
	attempt := s.facts.Attempt
	s.after(s.o.Grace, func() {
		if s.facts.Attempt == attempt && s.serverLives() {
			s.kill(s.o.KillLimit)
		}
	})
}

// blindEnd: the server that was kept without a supervisor has ended. One more
// supervisor may tidy up: a patch may have to be reverted.
func (s *shim) blindEnd() {
	s.sup.blind = false
	s.end.lastChance = true
	s.facts.deaths = nil
	if !s.sup.tried {
		s.startSupervisor()
	}
}
