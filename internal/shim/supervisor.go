package shim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

const (
	// lastWords is how long messages of a dead supervisor may still arrive.
	lastWords = 500 * time.Millisecond
	lineLimit = 4 << 10 // bytes of a line that the supervisor itself prints
)

// supervisor is the one that runs now.
type supervisor struct {
	proc   *proc.Proc
	link   *link
	status *wire.Status // it has ended; its last words may still come
	pulse  pulse
	blind  bool // none can be kept alive
	tried  bool // blind, and one more is started or alive
	turns  int  // of the pulse since the last one was tried
	reload bool // was asked for, and no supervisor has answered since

	program   string    // that is started; "" is our own
	successor string    // the program that the supervisor wants in its place
	since     time.Time // of the program; a new one has to prove itself
}

// probation is how long a new program must live to be kept when it dies.
const probation = time.Minute

// startSupervisor starts one, and a link to it. Where that is impossible it
// counts as a death.
func (s *shim) startSupervisor() {
	if s.end.finish != nil {
		return
	}
	ours, theirs, err := socketPair()
	if err != nil {
		s.supervisorLost(err.Error())
		return
	}
	voice, mouth, err := os.Pipe()
	if err != nil {
		ours.Close()
		theirs.Close()
		s.supervisorLost(err.Error())
		return
	}
	mouth.Fd() // makes it a blocking pipe, as a process expects
	go s.hear(voice)
	req := start{
		argv: s.o.Supervisor, program: s.supervisorProgram(), env: setEnv(s.o.Env, wire.AsideVar, fmt.Sprint(os.Getpid())),
		files: []*os.File{nil, mouth, mouth, theirs}, ownGroup: true, oom: s.oom.middle, side: proc.Aside,
	}
	s.sup.link, s.sup.status = nil, nil
	s.starter <- func() {
		s.fork(req, func(p proc.Proc, err error) {
			mouth.Close()
			theirs.Close()
			s.do(func() { s.supervisorStarted(p, err, ours) })
		})
	}
}

func (s *shim) supervisorStarted(p proc.Proc, err error, ours *os.File) {
	if err != nil {
		ours.Close()
		s.supervisorLost(fmt.Sprintf("cannot start the supervisor: %v", err))
		return
	}
	s.sup.proc, s.sup.link, s.sup.pulse = &p, newLink(ours), pulse{}
	s.facts.Time = now()
	if sp := s.srv.spool; sp != nil {
		s.facts.Output = sp.size()
	}
	hello := s.facts.snapshot()
	s.send(wire.Message{Type: wire.Welcome, Hello: &hello})
	for _, p := range s.srv.members {
		s.sendMember(p)
	}
	if s.sup.reload {
		s.send(wire.Message{Type: wire.Asked, Sig: int(unix.SIGHUP)})
	}
	s.ping()
	go s.listen(s.sup.link)
}

// listen passes on what the supervisor says, until it says no more.
func (s *shim) listen(l *link) {
	for {
		m, _, err := l.conn.Receive()
		if err != nil {
			s.do(func() { s.linkDown(l, err) })
			return
		}
		if m != nil {
			s.do(func() { s.received(l, *m) })
		}
	}
}

// linkDown: the supervisor has ended, or closed its end. One that lives on
// without a link is of no use.
func (s *shim) linkDown(l *link, err error) {
	if l != s.sup.link {
		return
	}
	s.sup.link = nil
	defer l.close()
	if s.sup.status != nil {
		s.supervisorGone()
		return
	}
	if s.end.finish != nil {
		return
	}
	if why := l.brokenBy(err); why != nil {
		s.say("the supervisor is given up: %v", why)
	}
	s.signalSupervisor(unix.SIGKILL)
}

// supervisorEnded: the process is gone; what it wrote before may still be read.
func (s *shim) supervisorEnded(status wire.Status) {
	s.sup.status, s.sup.proc = &status, nil
	if s.end.gone != nil {
		close(s.end.gone)
		return
	}
	if s.sup.link == nil {
		s.supervisorGone()
		return
	}
	l := s.sup.link
	s.after(lastWords, func() { s.linkDown(l, io.EOF) }) // a child of it may hold the other end
}

// supervisorGone draws the conclusions of a death.
func (s *shim) supervisorGone() {
	if s.end.finish != nil {
		return
	}
	s.supervisorLost(fmt.Sprintf("the supervisor ended (%s)", *s.sup.status))
}

func (s *shim) supervisorLost(why string) {
	if s.replaced(why) {
		s.startSupervisor()
		return
	}
	wait, givenUp := s.facts.supervisorDied(time.Now())
	switch {
	case s.end.lastChance:
		s.say("%s; it could not be brought back", why)
		s.finishAlone()
	case s.sup.blind: // it was one more try
		s.sup.tried = false
	case !givenUp:
		s.say("%s; it is started again", why)
		s.after(wait, s.startSupervisor)
	case s.serverLives():
		s.sup.blind = true
		s.say("%s, again and again: the server is kept, but nobody watches it. SIGTERM ends it.", why)
		s.sd("STATUS=blind: the supervisor cannot be kept alive; the server is not watched")
	default:
		s.say("%s, again and again, and no server lives", why)
		s.finishAlone()
	}
}

// replaced reports whether another program is to take the place of the supervisor
// that has ended: the one that it wanted, or, after one that does not work, our
// own again.
func (s *shim) replaced(why string) bool {
	sup := &s.sup
	switch {
	case sup.successor != "":
		sup.program, sup.successor, sup.since = sup.successor, "", time.Now()
		s.facts.reading = nil // it ended because it was told to
		s.say("the supervisor is now %q", sup.program)
		return true
	case sup.program != "" && time.Since(sup.since) < probation:
		s.say("%s: %q does not work here; the supervisor is the one before again", why, sup.program)
		sup.program = ""
		s.facts.reading = nil
		return true
	}
	return false
}

// supervisorProgram is the file to run. Our own is run from where it was
// installed, or, where another file stands there by now, from where we run
// ourselves: a supervisor that dies is no upgrade.
func (s *shim) supervisorProgram() string {
	if s.sup.program != "" {
		return s.sup.program
	}
	const self = "/proc/self/exe"
	if sameProgram(s.o.Supervisor[0], self) {
		return ""
	}
	return self
}

// hear prints what the supervisor itself writes: a panic, or why it could not go on.
func (s *shim) hear(voice *os.File) {
	defer voice.Close()
	lines := bufio.NewReaderSize(voice, lineLimit)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			s.err.print("sglaunch: " + strings.TrimPrefix(strings.TrimRight(string(line), "\r\n"), "sglaunch: "))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}
