package shim

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
	"sglaunch/internal/shim/wire"
)

// server is the newest attempt's.
type server struct {
	spec     wire.Spec
	spool    *spool
	stage    *stage
	cgroup   *proc.Cgroup // nil: none could be made
	starting bool
	ended    chan struct{} // closed when the server itself has ended
	pumps    int           // of its outputs, that still run
	copied   chan struct{} // closed when standard error has its own log; nil: it gets none
	members  map[proc.ID]proc.Proc
	killing  bool
	kills    int            // so far
	killSoon *time.Duration // asked for while the server is being started
	left     []wire.Proc    // what the last kill could not end
}

// serverLives reports whether a server was started and has not ended.
func (s *shim) serverLives() bool { return s.facts.Server != nil && s.facts.Exited == nil }

// spawn starts the server of an attempt, if no other can be alive.
func (s *shim) spawn(spec wire.Spec) {
	f := &s.facts
	switch {
	case spec.Attempt == f.Attempt && f.Server != nil: // said twice: a supervisor that came back
		s.send(wire.Message{Type: wire.Spawned, Attempt: spec.Attempt, Proc: f.Server})
		return
	case spec.Attempt <= f.Attempt:
		s.refuse(spec.Attempt, fmt.Sprintf("attempt %d has been", f.Attempt))
		return
	case s.srv.starting, f.Attempt > 0 && !f.TreeGone:
		s.refuse(spec.Attempt, fmt.Sprintf("attempt %d may still be alive", f.Attempt))
		return
	case s.end.finish != nil, s.end.insists():
		s.refuse(spec.Attempt, "the launch is ending")
		return
	}
	f.begin(spec.Attempt)
	if s.srv.spool != nil {
		s.srv.spool.forget()
	}
	sp := newSpool(spec.Attempt)
	s.srv = server{
		spec: spec, spool: sp, starting: true, ended: make(chan struct{}), members: map[proc.ID]proc.Proc{},
	}
	s.records.close()
	s.records = newRecordFile(spec.Records, s.troubleLater)
	go func() {
		if err := s.keepLog(sp, spec); err != nil {
			s.do(func() { s.spawnFailed(err) })
			return
		}
		stage, err := s.setStage(spec)
		if err != nil {
			s.do(func() { s.spawnFailed(err) })
			return
		}
		cgroup := s.enclose(spec)
		s.starter <- func() {
			s.fork(s.startOf(spec, stage, cgroup), func(p proc.Proc, err error) {
				stage.closeTheirs()
				s.do(func() { s.spawned(stage, cgroup, p, err) })
			})
		}
	}()
}

func (s *shim) startOf(spec wire.Spec, st *stage, cgroup *proc.Cgroup) start {
	env := dropEnv(spec.Env, wire.AsideVar)
	if name, value, ok := strings.Cut(spec.Marker, "="); ok {
		env = setEnv(env, name, value)
	}
	return start{
		argv: spec.Argv, dir: spec.Dir, env: env, files: st.theirs, newSession: true,
		terminal: st.master != nil, diesWithUs: true, oom: s.oom.original, side: proc.Ours, marker: spec.Marker,
		cgroup: cgroup,
	}
}

// troubleLater tells trouble from another goroutine.
func (s *shim) troubleLater(text string) { s.do(func() { s.trouble(text) }) }

func (s *shim) refuse(attempt int, why string) {
	s.send(wire.Message{Type: wire.SpawnFailed, Attempt: attempt, Text: "cannot start attempt " + fmt.Sprint(attempt) + ": " + why})
}

func (s *shim) spawnFailed(err error) {
	s.srv.starting, s.srv.killSoon = false, nil
	s.srv.spool.end(false)
	s.facts.TreeGone, s.facts.Drained = true, true
	s.send(wire.Message{Type: wire.SpawnFailed, Attempt: s.facts.Attempt, Text: err.Error()})
	s.advanceEnding()
}

func (s *shim) spawned(st *stage, cgroup *proc.Cgroup, p proc.Proc, err error) {
	if err != nil {
		st.close()
		go cgroup.Remove()
		s.spawnFailed(err)
		return
	}
	s.srv.starting, s.srv.stage, s.srv.cgroup = false, st, cgroup
	s.resize() // our terminal may have changed since the stage was set
	s.showOutput(st)
	for _, src := range st.sources {
		s.srv.pumps++
		go s.pump(src, s.srv.spool, s.srv.ended)
	}
	s.facts.Server = asWire(p)
	s.send(wire.Message{Type: wire.Spawned, Attempt: s.facts.Attempt, Proc: s.facts.Server})
	s.seen([]proc.Proc{p}, nil)
	if st.typed {
		s.stdin.attach(st.master)
	}
	s.watchSoon.ring()
	if limit := s.srv.killSoon; limit != nil {
		s.kill(*limit)
	}
	s.advanceEnding()
}

func (s *shim) serverEnded(status wire.Status) {
	s.facts.Exited = &status
	close(s.srv.ended)
	s.stdin.attach(nil)
	s.send(wire.Message{Type: wire.Exited, Attempt: s.facts.Attempt, Status: &status})
	s.watchSoon.ring()
	if s.sup.blind {
		s.blindEnd()
	}
}

// signalServer delivers a signal to the leader, its group or every member.
func (s *shim) signalServer(sig unix.Signal, scope string) {
	leader := s.facts.Server
	switch {
	case leader == nil:
	case scope == wire.ScopeTree:
		for id := range s.srv.members {
			_ = proc.Send(id, sig)
		}
	case scope == wire.ScopeGroup:
		if proc.Alive(idOf(leader)) { // then the group's number is its own too
			_ = unix.Kill(-leader.PID, sig)
		}
	default:
		_ = proc.Send(idOf(leader), sig)
	}
}

func idOf(p *wire.Proc) proc.ID { return proc.ID{PID: p.PID, Start: p.Start} }

func asWire(p proc.Proc) *wire.Proc {
	return &wire.Proc{PID: p.PID, Start: p.Start, PPID: p.PPID, Comm: p.Comm, Cmd: proc.Command(p), State: string(p.State)}
}
