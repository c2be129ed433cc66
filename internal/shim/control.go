package shim

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/shim/wire"
)

// received does what the supervisor says. What an older shim does not know it
// leaves alone.
func (s *shim) received(l *link, m wire.Message) {
	if l != s.sup.link {
		return // a supervisor that is gone
	}
	f := &s.facts
	switch m.Type {
	case wire.Print:
		s.print(m.Text)
	case wire.Quiet:
		s.quiet = m.Off
	case wire.Adopt:
		f.Launch = m.Launch
	case wire.Lease:
		f.Lease = m.Text
	case wire.Ledger:
		f.Ledger = m.Text
	case wire.Spawn:
		if m.Spec != nil {
			s.spawn(*m.Spec)
		}
	case wire.Stream:
		s.stream(m)
	case wire.Reading:
		f.startReading(wire.Range{Attempt: m.Attempt, From: m.From, To: m.To})
	case wire.Read:
		f.doneReading(m.Attempt, m.To)
	case wire.Signal:
		if m.Attempt == f.Attempt && m.Sig > 0 {
			s.signalServer(unix.Signal(m.Sig), m.Scope)
		}
	case wire.Kill:
		s.killAsked(m)
	case wire.Replace:
		s.sup.successor = m.Text
	case wire.Pong:
		s.answered()
	case wire.Notify:
		s.sd(m.Text)
	case wire.Finish:
		s.finish(m)
	}
}

// print shows a line of sglaunch's own, unless that is not wanted.
func (s *shim) print(text string) {
	if s.quiet {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		s.err.print(line)
	}
}

// stream sends the newest attempt's output; of an older one nothing is kept.
func (s *shim) stream(m wire.Message) {
	if s.srv.spool != nil && m.Attempt == s.facts.Attempt {
		s.sup.link.stream(s.srv.spool, max(m.From, 0))
	}
}

// killAsked answers at once where the tree is gone already.
func (s *shim) killAsked(m wire.Message) {
	switch f := &s.facts; {
	case m.Attempt != f.Attempt:
		s.send(wire.Message{Type: wire.TreeGone, Attempt: m.Attempt}) // it ended before the newest began
	case f.TreeGone:
		s.send(wire.Message{Type: wire.TreeGone, Attempt: m.Attempt})
	default:
		s.kill(time.Duration(m.Limit))
	}
}
