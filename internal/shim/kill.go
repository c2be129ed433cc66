package shim

import (
	"cmp"
	"context"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// usualDrain is how long output may come after the tree's end where the
// supervisor does not say.
const usualDrain = 5 * time.Second

// killSlack is how long after its limit a kill may take to say so.
const killSlack = 2 * time.Second

// kill ends everything of the attempt, and then says what is left.
func (s *shim) kill(limit time.Duration) {
	if limit <= 0 {
		limit = s.o.KillLimit
	}
	switch {
	case s.srv.killing, s.facts.Attempt == 0, s.facts.TreeGone:
		return
	case s.srv.starting: // what is not there yet cannot be killed, but will be
		s.srv.killSoon = &limit
		return
	}
	s.srv.killing = true
	s.srv.kills++
	attempt, number, cgroup, known := s.facts.Attempt, s.srv.kills, s.srv.cgroup, s.memberList()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		gone, left := proc.EndAll(ctx, known, s.muster, cgroup)
		s.do(func() {
			if s.facts.Attempt == attempt && (gone || s.srv.killing) { // good news count late too
				s.killed(gone, left)
			}
		})
	}()
	s.after(limit+killSlack, func() {
		if s.facts.Attempt == attempt && s.srv.killing && s.srv.kills == number {
			s.killed(false, s.memberList())
		}
	})
}

// muster returns the living members; who is new goes to the loop too.
func (s *shim) muster() (members []proc.Proc, complete bool, err error) {
	s.forking.Lock()
	defer s.forking.Unlock()
	_, err = s.scan()
	return s.tree.Members(proc.Ours), s.tree.Complete(), err
}

func (s *shim) memberList() []proc.Proc {
	var list []proc.Proc
	for _, p := range s.srv.members {
		list = append(list, p)
	}
	return list
}

func (s *shim) killed(gone bool, left []proc.Proc) {
	s.srv.killing = false
	s.facts.TreeGone = gone
	m := wire.Message{Type: wire.TreeGone, Attempt: s.facts.Attempt}
	if !gone {
		m.Type = wire.TreeLeft
		for _, p := range left {
			w := asWire(p)
			w.State = proc.Condition(p)
			m.Procs = append(m.Procs, *w)
		}
	}
	s.srv.left = m.Procs
	s.send(m)
	if !s.facts.Drained {
		s.cutAfter(cmp.Or(time.Duration(s.srv.spec.Drain), usualDrain))
	}
	s.advanceEnding()
}
