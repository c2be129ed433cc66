package machine

import (
	"fmt"
	"strings"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/phases"
)

// How an attempt ends, in this order, whatever began it:
// evidence, stopping, killing (until the tree is gone and the output is
// drained), releasing, reverting; then policy decides.

// fail ends the attempt because of what was found, not because of an ask.
func (m *Machine) fail(b bound) {
	m.run.Ending = true
	m.run.Outcome, m.run.Cause, m.run.Why, m.run.Idle = b.outcome, b.cause, b.why, m.idle()
	if !m.passesThrough() { // else the end of the launch says the same
		m.run.Said = b.why
	}
	m.say("verdict", m.run.Said, "outcome", string(b.outcome), "cause", b.cause, "phase", m.run.Phase.String(), "acted", true)
	m.enter(StateEvidence, evidenceLimit+AnswerMargin)
	m.do(GatherEvidence{Reason: b.why, Limit: evidenceLimit, Twice: b.outcome != OutcomeCrashed})
}

// endAttempt ends the attempt because somebody asked.
func (m *Machine) endAttempt(why string) {
	m.run.Ending, m.run.Asked = true, true
	m.run.Outcome, m.run.Why = OutcomeStopped, why
	m.terminate()
}

func (m *Machine) evidence(b Evidence) {
	if m.state != StateEvidence {
		return
	}
	m.say("evidence", b.Stacks, "dir", b.Dir, "suspects", b.Suspects, "hung", b.Hung)
	m.run.Neighbours = b.Neighbours
	m.learn(b.Diagnosis)
	m.locked(b)
	m.starved(b)
	m.terminate()
}

// locked: what hangs and is seen to wait for a compile lock hangs for that. So
// does what is idle where one stands that nobody holds, and no compiler runs; but
// neither weights nor a rendezvous wait for such a lock.
func (m *Machine) locked(b Evidence) {
	r := &m.run
	waits := r.Phase != phases.LoadingWeights && r.Phase != phases.DistributedInit
	idle := b.Stale != "" && r.Idle && len(r.Reading.Compilers) == 0 && waits
	if r.Outcome != OutcomeHung || b.Lock == "" && !idle {
		return
	}
	r.Cause = "jit_lock"
	for _, text := range []string{b.Lock, b.Stale} {
		if text != "" {
			r.Why += "; " + text
		}
	}
}

// learn takes what the output says in all; a later word is a fuller one. But
// what a server prints after our own signal is our doing and explains nothing.
func (m *Machine) learn(d Diagnosis) {
	if m.run.Signalled {
		return
	}
	m.run.Diagnosis = d
	if d.Drain && m.run.Drain.IsZero() {
		m.run.Drain = m.now
	}
	if d.Cause != "" && d.Cause != "unknown" && !m.run.Proven && !m.run.Asked {
		m.run.Cause = d.Cause
	}
}

// terminate asks the server to end by itself, within its time.
func (m *Machine) terminate() {
	if m.run.Exited != nil || m.run.Server == nil || m.asks >= askedHard {
		m.kill()
		return
	}
	if m.drains() && m.run.announced() && m.opt.Stop.Settle > 0 {
		m.enter(StateStopping, m.opt.Stop.Settle) // for whoever sends it requests to hear of it
		return
	}
	m.signal()
}

// drains reports whether a server that serves is ended in peace.
func (m *Machine) drains() bool { return m.run.Asked && m.run.ready() && m.asks < askedTwice }

// signal asks the server to end.
func (m *Machine) signal() {
	limit := m.opt.Stop.Grace
	if m.drains() {
		limit += m.opt.Stop.Drain
	}
	m.run.Signalled = true
	m.enter(StateStopping, limit)
	m.do(SignalServer{Sig: m.opt.Stop.Signal})
	if limit <= 0 {
		m.kill()
	}
}

// kill ends everything that belongs to the attempt.
func (m *Machine) kill() {
	m.run.Signalled = m.run.Signalled || m.run.Exited == nil
	m.enter(StateKilling, KillLimit+AnswerMargin)
	m.do(KillTree{Limit: KillLimit})
}

func (m *Machine) exited(s wire.Status) {
	if m.run.Exited != nil {
		return
	}
	m.run.Exited = &s
	m.run.Unasked = !m.run.Signalled
	switch {
	case m.running() && m.run.drained(): // no failure, no evidence
		m.run.Ending, m.run.Outcome, m.run.Why = true, OutcomeStopped, drainedWhy
		m.kill()
	case m.running():
		m.fail(bound{outcome: OutcomeCrashed, cause: m.causeOfExit(s),
			why: fmt.Sprintf("the server ended unasked in %s: %s%s", m.run.Phase, s, senderOf(s))})
	case m.state == StateStopping:
		m.kill()
	}
}

// senderOf says who sends a signal that people mistake for a crash.
func senderOf(s wire.Status) string {
	if s.Signal == 3 {
		return ", as a child of the server that failed sends it, or `kill -QUIT`"
	}
	return ""
}

// drained reports whether the server shut down in order at somebody's wish. A
// fatal word of its own says otherwise.
func (r *run) drained() bool { return !r.Drain.IsZero() && r.Fatal == nil && !r.Diagnosis.Failed }

const drainedWhy = "somebody else asked the server to stop"

// settle names the outcome of an exit that nobody here asked for, now that all
// of its words are in: an exit may overtake the lines that explain it.
func (r *run) settle() {
	if !r.Unasked || r.Proven || r.Outcome != OutcomeCrashed && r.Outcome != OutcomeStopped {
		return
	}
	if r.drained() {
		r.Outcome, r.Cause, r.Why = OutcomeStopped, "", drainedWhy
	} else {
		r.Outcome = OutcomeCrashed
	}
}

// causeOfExit explains a death from its status alone; the output's word, when
// it is complete, is preferred.
func (m *Machine) causeOfExit(s wire.Status) string {
	switch {
	case m.run.Fatal != nil && m.run.Fatal.Cause != "":
		return m.run.Fatal.Cause
	case s.Signal == 4 || s.Signal == 6 || s.Signal == 7 || s.Signal == 8 || s.Signal == 11:
		return "segfault"
	case s.Signal == 1 || s.Signal == 2 || s.Signal == 9 || s.Signal == 15:
		return "killed_outside"
	case s.Signal == 3: // the signal by which a failing child tells its parent
		return "scheduler_exception"
	}
	return "unknown"
}

func (m *Machine) drained(b Drained) {
	if m.run.Drained || !m.spawnedYet() {
		return
	}
	m.run.Drained = true
	if b.Cut {
		m.say("fault", fmt.Sprintf("output was cut after %d bytes: a process outside our reach holds the terminal", b.Bytes))
	}
	m.learn(b.Diagnosis)
	m.treeAndOutputDone()
}

func (m *Machine) treeGone() {
	if m.state != StateKilling || m.run.TreeGone {
		return
	}
	m.run.TreeGone, m.run.HearUntil = true, m.now.Add(hearLimit)
	m.say("tree_gone", "")
	m.enter(StateKilling, DrainMargin) // for the rest of the output
	m.treeAndOutputDone()
}

// awaited reports whether somebody waits for this end: who has asked for that of the
// attempt, or of the launch while the attempt was failing.
func (m *Machine) awaited() bool { return m.run.Asked || m.stop != nil }

// hearing waits on while what is left of the output is read: it may say why the
// server died. Nobody who waits for the end is kept waiting for that.
func (m *Machine) hearing() {
	left := m.run.HearUntil.Sub(m.now)
	if m.state == StateKilling && m.run.TreeGone && !m.awaited() && left > 0 {
		m.enter(StateKilling, min(DrainMargin, left))
	}
}

// treeAndOutputDone goes on when both are true: an exit may overtake the lines
// that explain it.
func (m *Machine) treeAndOutputDone() {
	if m.state != StateKilling || !m.run.TreeGone || !m.run.Drained {
		return
	}
	m.enter(StateReleasing, m.opt.Stop.Release+AnswerMargin)
	m.do(AwaitRelease{Limit: m.opt.Stop.Release})
}

// treeLeft ends a launch whose processes would not go: the next attempt would
// meet them. Files are not restored under a living importer.
func (m *Machine) treeLeft(b TreeLeft) {
	if m.state != StateKilling || m.run.TreeGone {
		return
	}
	m.run.Held = "processes that would not die: " + describe(b.Procs)
	if len(m.run.Patches) > 0 {
		m.run.Held += "; the patched files stay until `sglaunch recover` finds them gone"
	}
	m.say("fault", m.run.Held, "processes", b.Procs)
	m.decide()
}

// killOverdue acts where neither the tree's end nor the output's end was told
// in time.
func (m *Machine) killOverdue() {
	if m.run.TreeGone {
		m.run.Drained = true // the bounded drain time is over
		m.treeAndOutputDone()
		return
	}
	m.treeLeft(TreeLeft{})
}

func (m *Machine) released(b Released) {
	if m.state != StateReleasing {
		return
	}
	m.say("gpu_released", "", "took", b.Took)
	m.revert()
}

// notReleased: what is ours and does not come free ends the launch; what
// somebody else holds is news, and the next preflight's matter.
func (m *Machine) notReleased(b NotReleased) {
	if m.state != StateReleasing {
		return
	}
	m.say("fault", "not free after "+m.opt.Stop.Release.String()+": "+b.Holder, "holder", b.Holder, "foreign", b.Foreign)
	if !b.Foreign {
		m.run.Held = "GPU memory or ports did not come free: " + b.Holder
	}
	m.revert()
}

// revert restores the files; nothing of the attempt runs any more.
func (m *Machine) revert() {
	m.enter(StateReverting, PatchLimit+AnswerMargin)
	m.do(m.revertPatch())
}

func (m *Machine) revertPatch() RevertPatch { return RevertPatch{SetAside: m.run.Corrupt} }

func (m *Machine) reverted() {
	if m.state == StateReverting {
		m.decide()
	}
}

func (m *Machine) revertFailed(b RevertFailed) {
	if m.state != StateReverting {
		return
	}
	m.run.Patchless, m.run.Spoilt = "a patched file was not restored: "+b.Reason, true
	m.say("patch", m.run.Patchless, "state", "not_reverted", "reason", b.Reason)
	m.decide()
}

// decide ends the attempt's story and chooses what follows.
func (m *Machine) decide() {
	r := &m.run
	r.settle()
	m.count()
	m.blameNeighbour()
	outcome, cause := m.outcome()
	m.say("attempt_ended", "", "outcome", string(outcome), "cause", cause,
		"phase", r.Phase.String(), "ready", r.ready(), "text", r.Diagnosis.Text,
		"line", r.Diagnosis.Line, "rank", r.Diagnosis.Rank, "fingerprint", m.fingerprint(),
		"phase_seconds", m.now.Sub(r.PhaseAt).Seconds(), "quiet", m.quiet().Seconds())
	d := m.policy()
	if !d.Again {
		if d.Code != CodeStopped && !m.passesThrough() {
			m.say("gave_up", m.unsaid(d.Reason), "code", d.Code, "cause", r.Cause)
		}
		m.finish(d.Code, d.Reason)
		return
	}
	m.take(d)
	m.say("decision", fmt.Sprintf("attempt %d in %s: %s", m.attempt+1, round(d.Delay), m.unsaid(d.Reason)),
		"delay", d.Delay.Seconds(), "reason", d.Reason, "without", m.without())
	m.enter(StateBackoff, max(d.Delay, time.Nanosecond))
}

// finish ends the launch. What gave_up has said is not said twice.
func (m *Machine) finish(code int, reason string) {
	m.code = code
	m.enter(StateEnded, 0)
	text := m.unsaid(reason)
	for _, e := range m.out {
		if r, ok := e.Body.(Report); ok && r.Event == "gave_up" {
			text = ""
		}
	}
	m.say("launch_ended", text, "code", code, "reason", reason)
	m.do(Finish{Code: code, Reason: reason})
}

// unsaid is a reason as it is told to a person who has heard the verdict.
func (m *Machine) unsaid(reason string) string {
	if m.run.Said == "" {
		return reason
	}
	return strings.Replace(reason, ": "+m.run.Said, "", 1)
}
