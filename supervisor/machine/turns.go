package machine

import (
	"fmt"
	"time"

	"sglaunch/phases"
)

// What can turn the story at any point: somebody asks for the end, an answer
// does not come in time, the supervisor itself dies and is back.

// How insistently the end was asked for.
const (
	askedOnce  = 1 + iota // let the server drain
	askedTwice            // no more drain
	askedHard             // SIGKILL now
)

// stopAsked begins the end of the launch, wherever it stands.
func (m *Machine) stopAsked(b StopAsked) {
	m.asks = min(m.asks+1, askedHard)
	if b.Force {
		m.asks = max(m.asks, askedTwice)
	}
	if m.stop == nil {
		m.stop = &b
		m.say("stopping", "stopping: "+b.By, "by", b.By)
	}
	switch m.state {
	case StateIdle, StateBackoff:
		m.finish(CodeStopped, "stopped as asked: "+m.stop.By)
	case StatePreflight: // nothing was touched yet
		m.run.Outcome, m.run.Why = OutcomeStopped, m.stop.By
		m.decide()
	case StateStarting, StateChecking, StateUp:
		if !m.run.spawning() { // else it is ended as soon as it exists
			m.endAttempt(m.stop.By)
		}
	case StateEvidence:
		if m.asks >= askedTwice {
			m.terminate()
		}
	case StateStopping:
		m.hurry()
	case StateReleasing:
		if m.asks >= askedTwice {
			m.revert() // nobody relaunches: who waits, waits for the exit code alone
		}
	}
}

// restartAsked ends what runs, in order, and begins anew at once. Whoever asks
// knows what the budgets do not: they start anew, too. What is only beginning
// needs no restart.
func (m *Machine) restartAsked(b RestartAsked) {
	if m.stop != nil {
		return
	}
	switch m.state {
	case StateIdle, StatePreflight, StatePatching, StateEnded:
		return
	case StateStarting:
		if m.run.spawning() {
			return
		}
	case StateBackoff:
		m.say("decision", "attempt now: "+b.By, "delay", 0.0, "reason", "asked by "+b.By, "without", m.without())
		m.budget, m.beside = budget{}, nil
		m.nextAttempt()
		return
	}
	if m.run.Restart != nil {
		return
	}
	m.run.Restart = &b
	m.say("stopping", "restarting: "+b.By, "by", b.By, "restart", true)
	if m.running() {
		m.endAttempt(b.By)
	}
}

// reload goes on by other limits, budgets and rules of the end. What has passed
// already is judged by them too. What the server was started with stays: its
// command, the rungs that have changed it, what history says of it.
func (m *Machine) reload(b Reload) {
	next, was := b.Options, m.opt
	next.SGLang, next.Follower, next.Learned, next.Argv, next.Rungs = was.SGLang, was.Follower, was.Learned, was.Argv, was.Rungs
	next.Check.Cannot = was.Check.Cannot
	if err := next.Validate(); err != nil {
		m.say("reloaded", fmt.Sprintf("the configuration stays as it was: %v", err), "by", b.By, "refused", err.Error())
		return
	}
	if next.Act != was.Act {
		m.run.Warned = nil // what was only told may have to be acted on now
	}
	m.opt = next
	m.say("reloaded", b.Text, "by", b.By)
}

// hurry shortens the time that a server has to end by itself.
func (m *Machine) hurry() {
	switch {
	case m.asks >= askedHard:
		m.kill()
	case m.asks == askedTwice && !m.run.Signalled:
		m.signal()
	case m.asks == askedTwice && m.deadline.After(m.now.Add(m.opt.Stop.Grace)):
		m.enter(StateStopping, m.opt.Stop.Grace)
	}
}

// tick acts on the passing of the deadline. Every wait has one, so nothing that
// can hang holds a launch for longer.
func (m *Machine) tick() {
	if m.deadline.IsZero() || m.now.Before(m.deadline) {
		return
	}
	switch m.state {
	case StatePreflight:
		m.preflighted(Preflighted{}) // a check that hangs refuses nothing
	case StatePatching:
		m.patchRefused(PatchRefused{Reason: "applying the patches took longer than " + PatchLimit.String()})
	case StateStarting, StateChecking, StateUp:
		m.boundsPassed()
	case StateEvidence:
		m.terminate()
	case StateStopping:
		if m.run.Signalled {
			m.kill()
		} else {
			m.signal()
		}
	case StateKilling:
		m.killOverdue()
	case StateReleasing:
		// The tree is gone, that is proven; what else is held is not known.
		m.notReleased(NotReleased{Holder: "not known: nobody answered", Foreign: true})
	case StateReverting:
		m.revertFailed(RevertFailed{Reason: "restoring the files took longer than " + PatchLimit.String()})
	case StateBackoff:
		m.nextAttempt()
	}
}

// resumed takes over from a supervisor that died. What that one had asked for
// and not seen answered is asked for again; every effect bears that.
func (m *Machine) resumed(b Resumed) {
	m.say("supervisor_restarted", fmt.Sprintf("supervisor is back (restart %d)", b.Restarts), "restarts", b.Restarts)
	switch {
	case m.state == StateEnded:
		m.do(Finish{Code: m.code})
		return
	case b.Attempt > m.attempt:
		m.adopt(b)
		return
	}
	m.run.Moved, m.run.ReadAt = m.now, time.Time{} // patience counts what was watched
	known := b.Attempt == m.attempt
	switch m.state {
	case StateIdle:
		m.nextAttempt()
	case StatePreflight:
		m.do(Preflight{Beside: m.beside})
	case StatePatching:
		m.do(ApplyPatch{Without: m.without()})
	case StateStarting:
		m.resumeSpawn(known, b)
	case StateChecking:
		m.do(CheckOutput{m.opt.Check.CheckSize})
	case StateEvidence:
		m.do(GatherEvidence{Reason: m.run.Why, Limit: evidenceLimit})
	case StateStopping:
		if m.run.Signalled {
			m.do(SignalServer{Sig: m.opt.Stop.Signal})
		}
	case StateKilling:
		m.do(KillTree{Limit: KillLimit})
		m.hearing() // what is read is read from the start again
	case StateReleasing:
		m.do(AwaitRelease{Limit: m.opt.Stop.Release})
	case StateReverting:
		m.do(m.revertPatch())
	}
	if known && b.Exited != nil {
		m.exited(*b.Exited)
	}
	if known && b.TreeGone {
		m.treeGone()
	}
}

// resumeSpawn finds out what became of a spawn whose answer was lost.
func (m *Machine) resumeSpawn(known bool, b Resumed) {
	switch {
	case !m.run.spawning():
	case known && b.Server != nil:
		m.spawned(*b.Server)
	default:
		m.do(m.spawn())
	}
}

// adopt takes up an attempt of which the journal says nothing (a disk that did
// not take it). The server does not notice; its output is read again from the
// start and tells the phase. Whatever patch there is, the ledger restores it.
func (m *Machine) adopt(b Resumed) {
	m.attempt = b.Attempt
	m.run = run{Server: b.Server, SpawnedAt: m.now, PhaseAt: m.now, Moved: m.now}
	m.budget.spawn(m.now)
	m.enter(StateStarting, 0)
	m.say("phase", fmt.Sprintf("attempt %d was taken up as it is: the journal does not know it", m.attempt),
		"phase", phases.Starting.String())
	switch {
	case b.Exited != nil:
		m.exited(*b.Exited)
	case b.TreeGone || b.Server == nil:
		m.fail(bound{outcome: OutcomeCrashed, why: "what became of the server is not known"})
	case m.stop != nil:
		m.endAttempt(m.stop.By)
	}
}
