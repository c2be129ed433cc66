package shim

import (
	"os"
	"slices"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

const (
	firstLook = 100 * time.Millisecond // between two looks after a change
	lastLook  = 2 * time.Second        // once nothing has changed for a while
)

// watch looks for descendants: often after a change, rarely in service. It has
// an eye on blocked readers too.
func (s *shim) watch() {
	wait := firstLook
	for {
		timer := time.NewTimer(wait)
		select {
		case <-s.watchSoon:
			timer.Stop()
			wait = firstLook
		case <-timer.C:
			wait = min(wait+wait/8, lastLook)
		}
		if s.look() {
			wait = firstLook
		}
		s.out.look()
		if s.err != s.out {
			s.err.look()
		}
	}
}

// look scans once.
func (s *shim) look() (changed bool) {
	s.forking.Lock()
	defer s.forking.Unlock()
	changed, _ = s.scan()
	return changed
}

// sessionsKept bounds the memory of sessions of a tree that makes ever new ones.
const sessionsKept = 1024

// scan tells the loop what is new. The lock is held.
func (s *shim) scan() (changed bool, err error) {
	born, died, err := s.tree.Scan()
	if len(s.sids) > sessionsKept { // of those that ended nobody is left to be told apart
		clear(s.sids)
		born = append(s.tree.Members(proc.Ours), born...)
	}
	for _, p := range born {
		s.sids[p.Session] = true
	}
	if changed = len(born)+len(died) > 0; changed {
		s.do(func() { s.seen(born, died) })
	}
	return changed, err
}

// judge decides whose a child of ours is that nobody saw with its parents: an
// orphan. The lock is held. In doubt it is the server's, unless other processes
// may have left it to us: as the first process of a container, and where some
// were below us before the launch began, an orphan has to show a sign.
func (s *shim) judge(p proc.Proc) proc.Side {
	if !s.began {
		s.strangers = true
		return proc.Aside
	}
	if s.sids[p.Session] {
		return proc.Ours
	}
	for _, other := range s.tree.Members(proc.Aside) {
		if other.Group == p.Group || other.Session == p.Session && p.Session != s.session {
			return proc.Aside
		}
	}
	env, err := proc.Environ(p.PID)
	switch {
	case err != nil || len(env) == 0: // wiped, as setproctitle does
		return proc.Ours
	case slices.Contains(env, wire.AsideMark(os.Getpid())):
		return proc.Aside
	case s.strangers && !slices.Contains(env, s.marker):
		return proc.Aside
	}
	return proc.Ours
}

// seen remembers members, records them and tells the supervisor.
func (s *shim) seen(born []proc.Proc, died []proc.ID) {
	for _, id := range died {
		delete(s.srv.members, id)
		s.records.died(id)
	}
	for _, p := range born {
		if _, known := s.srv.members[p.ID]; known {
			continue
		}
		s.srv.members[p.ID] = p
		s.records.born(p)
		s.sendMember(p)
	}
}

func (s *shim) sendMember(p proc.Proc) {
	s.send(wire.Message{Type: wire.Member, Attempt: s.facts.Attempt, Proc: asWire(p)})
}
