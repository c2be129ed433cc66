package shim

import (
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/shim/wire"
)

// A supervisor that was stopped, or whose loop hangs, keeps its socket open. What
// tells it from one that has nothing to say is that it answers no ping.
const (
	unansweredMost  = 24 // pings in a row, two minutes by default: a host short of memory is slow
	unansweredAsked = 2  // once somebody wants the end, which the next supervisor hears of
	blindTurns      = 60 // five minutes: what no supervisor could live with may have passed
)

// pulse is how the supervisor of the moment answers.
type pulse struct {
	felt   bool // it has answered: it knows pings, and has taken the launch up
	missed int  // pings since its last answer
}

// feel pings the supervisor from now on, and replaces one that answers no more.
// Counted are turns of our own, no clock: while the host is suspended, or all of
// us are stopped, nobody misses any.
func (s *shim) feel() {
	s.after(s.o.PingEvery, s.feel)
	if s.sup.turns++; s.sup.turns >= blindTurns {
		s.tryAgain()
	}
	if s.sup.link == nil || s.end.finish != nil {
		return
	}
	p, most := &s.sup.pulse, unansweredMost
	if s.end.wished {
		most = unansweredAsked
	}
	silent := time.Duration(p.missed) * s.o.PingEvery
	switch {
	case p.felt && p.missed >= most:
		s.say("the supervisor is given up: it has answered nothing for %s", silent)
		s.dropSupervisor()
		return
	case p.missed == unansweredMost:
		s.say("the supervisor has not taken the launch up for %s (does the state directory answer?): nobody watches the server meanwhile", silent)
		s.sd("STATUS=the supervisor has not taken the launch up yet; the server is not watched")
	}
	s.ping()
}

func (s *shim) ping() {
	s.sup.pulse.missed++
	s.send(wire.Message{Type: wire.Ping})
}

// answered: the supervisor lives, and has heard all that was said before.
func (s *shim) answered() {
	s.sup.pulse, s.sup.reload = pulse{felt: true}, false
	if s.sup.blind {
		s.sup.blind, s.sup.tried = false, false
		s.say("the server is watched again")
	}
}

// tryAgain starts one more supervisor where none could be kept alive: a disk may be
// back, or a folder. The server is not risked by it.
func (s *shim) tryAgain() {
	s.sup.turns = 0
	if s.sup.blind && !s.sup.tried && s.serverLives() {
		s.sup.tried = true
		s.startSupervisor()
	}
}

// dropSupervisor ends one that is of no use; its death brings the next. It must
// not see the link close while it lives: it would end the server, as after our
// own death.
func (s *shim) dropSupervisor() {
	s.signalSupervisor(unix.SIGKILL)
	s.sup.link.close()
	s.sup.link = nil
}
