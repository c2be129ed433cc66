package supervisor

import (
	"fmt"
	"strings"
	"time"

	"sglaunch/internal/shim/wire"
)

// How an attempt ends, in this order, whatever began it:
// evidence, stopping, killing (until the tree is gone and the output is
// drained), releasing, reverting; then policy decides.

// fail ends the attempt because of what was found, not because of an ask.
func (m *Machine) fail(o Outcome, cause, why string) {
	if m.run.ending {
		return
	}
	m.run.ending = true
	m.run.outcome, m.run.cause, m.run.why = o, cause, why
	if m.run.ready() && o != OutcomeStopped {
		m.run.outcome = OutcomeUnhealthy
		if m.run.exited != nil {
			m.run.outcome = OutcomeCrashed
		}
	}
	m.say("verdict", why, "outcome", string(m.run.outcome), "cause", cause, "phase", m.run.phase.String())
	m.enter(StateEvidence, evidenceLimit+answerMargin)
	m.do(GatherEvidence{Reason: why, Limit: evidenceLimit})
}

// endAttempt ends the attempt because somebody asked; polite lets it drain.
func (m *Machine) endAttempt(o Outcome, cause, why string, polite bool) {
	if m.run.ending {
		return
	}
	m.run.ending, m.run.asked = true, true
	m.run.outcome, m.run.cause, m.run.why = o, cause, why
	if polite {
		m.terminate()
	} else {
		m.kill()
	}
}

func (m *Machine) evidence(b Evidence) {
	if m.state != StateEvidence {
		return
	}
	m.say("evidence", "", "dir", b.Dir)
	m.learn(b.Diagnosis)
	m.terminate()
}

// learn takes what the output says in all. A later word is a fuller one.
func (m *Machine) learn(d Diagnosis) {
	m.run.diagnosis = d
	if d.Cause == "" || d.Cause == "unknown" || m.run.outcome == OutcomeStopped {
		return
	}
	if m.run.cause == "gpu_lost" || m.run.cause == "xid" || m.run.cause == "patch_ineffective" {
		return // established by better sources than the output
	}
	m.run.cause = d.Cause
}

// terminate asks the server to end by itself, within its time.
func (m *Machine) terminate() {
	if m.run.exited != nil || m.run.server == nil {
		m.kill()
		return
	}
	limit := m.opt.Stop.Grace
	if m.run.asked && m.run.ready() {
		limit += m.opt.Stop.Drain
	}
	m.enter(StateStopping, limit)
	m.do(SignalServer{Sig: m.opt.Stop.Signal})
}

// kill ends everything that belongs to the attempt.
func (m *Machine) kill() {
	m.enter(StateKilling, killLimit+answerMargin)
	m.do(KillTree{Limit: killLimit})
}

func (m *Machine) exited(s wire.Status) {
	if m.run.exited != nil {
		return
	}
	m.run.exited = &s
	switch m.state {
	case StateStarting, StateUp:
		if m.run.drain {
			m.endAttempt(OutcomeStopped, "", "somebody else asked the server to stop", false)
			return
		}
		m.fail(OutcomeCrashed, m.causeOfExit(s), fmt.Sprintf("the server ended unasked in %s: %s", m.run.phase, s))
	case StateStopping:
		m.kill()
	}
}

// causeOfExit explains a death from its status alone; the output's word, when
// it is complete, is preferred.
func (m *Machine) causeOfExit(s wire.Status) string {
	switch {
	case m.run.fatal != nil:
		return m.run.fatal.Cause
	case s.Signal == 11 || s.Signal == 7 || s.Signal == 6 || s.Signal == 4:
		return "segfault"
	case s.Signal == 9:
		return "killed_outside"
	}
	return "unknown"
}

func (m *Machine) drained(b Drained) {
	if m.run.drained {
		return
	}
	m.run.drained = true
	if b.Cut {
		m.say("fault", fmt.Sprintf("output was cut after %d bytes: a process outside our reach holds the terminal", b.Bytes))
	}
	m.learn(b.Diagnosis)
	m.treeAndOutputDone()
}

func (m *Machine) treeGone() {
	if m.state != StateKilling || m.run.treeGone {
		return
	}
	m.run.treeGone, m.run.goneSince = true, m.now
	m.say("tree_gone", "")
	m.deadline = m.now.Add(drainMargin)
	m.treeAndOutputDone()
}

// treeAndOutputDone goes on when both are true: an exit may overtake the lines
// that explain it.
func (m *Machine) treeAndOutputDone() {
	if m.state == StateKilling && m.run.treeGone && m.run.drained {
		m.release()
	}
}

func (m *Machine) treeLeft(b TreeLeft) {
	if m.state != StateKilling || m.run.treeGone {
		return
	}
	m.run.left = b.Procs
	m.run.held = "processes that would not die: " + describe(b.Procs)
	m.say("fault", m.run.held, "processes", b.Procs)
	m.revertUnder() // no relaunch: the next attempt would meet them
}

// killOverdue acts where neither the tree's end nor the output's end was told
// in time.
func (m *Machine) killOverdue() {
	if m.run.treeGone {
		m.run.drained = true // the bounded drain time is over
		m.treeAndOutputDone()
		return
	}
	m.treeLeft(TreeLeft{})
}

func (m *Machine) release() {
	m.enter(StateReleasing, m.opt.Stop.Release+answerMargin)
	m.do(AwaitRelease{Limit: m.opt.Stop.Release})
}

func (m *Machine) released(b Released) {
	if m.state != StateReleasing {
		return
	}
	m.say("gpu_released", "", "took", b.Took)
	m.revert()
}

func (m *Machine) notReleased(b NotReleased) {
	if m.state != StateReleasing {
		return
	}
	m.say("fault", "not free after "+m.opt.Stop.Release.String()+": "+b.Holder, "holder", b.Holder, "foreign", b.Foreign)
	if !b.Foreign {
		m.run.held = "GPU memory or ports did not come free: " + b.Holder
	}
	m.revert()
}

// revert restores the files; nothing of the attempt runs any more.
func (m *Machine) revert() {
	m.enter(StateReverting, patchLimit)
	m.do(RevertPatch{})
}

// revertUnder ends a launch whose processes would not go: files are not
// restored under a living importer, `sglaunch recover` does it later.
func (m *Machine) revertUnder() {
	if len(m.run.patches) == 0 {
		m.decide()
		return
	}
	m.run.held += "; the patched files stay until `sglaunch recover` finds them gone"
	m.decide()
}

func (m *Machine) reverted() {
	if m.state == StateReverting {
		m.decide()
	}
}

func (m *Machine) revertFailed(b RevertFailed) {
	if m.state != StateReverting {
		return
	}
	m.say("patch", "a patched file was not restored: "+b.Reason, "state", "not_reverted", "reason", b.Reason)
	m.run.why = "a patched file was not restored: " + b.Reason
	m.run.refusal = codePatch
	m.decide()
}

// decide ends the attempt's story and chooses what follows.
func (m *Machine) decide() {
	d := m.policy()
	m.say("attempt_ended", "", "outcome", string(m.run.outcome), "cause", m.run.cause,
		"phase", m.run.reached.String(), "ready", m.run.ready(), "text", m.run.diagnosis.Text,
		"line", m.run.diagnosis.Line, "rank", m.run.diagnosis.Rank)
	if d.Suspect != "" {
		m.suspects = append(m.suspects, d.Suspect)
		m.degrade("without patch " + d.Suspect)
	}
	if !d.Again {
		event := "launch_ended"
		if d.Code == codeLater || d.Code == codeNever || d.Code == codePatch || d.Code == codeHeld {
			m.say("gave_up", d.Reason, "code", d.Code, "cause", m.run.cause)
			m.finish(d.Code, d.Reason)
			return
		}
		m.say(event, d.Reason, "code", d.Code)
		m.finish(d.Code, d.Reason)
		return
	}
	m.say("decision", fmt.Sprintf("attempt %d in %s: %s", m.attempt+1, round(d.Delay), d.Reason),
		"delay", d.Delay.Seconds(), "reason", d.Reason, "without", m.suspects)
	m.enter(StateBackoff, max(d.Delay, time.Nanosecond))
}

func (m *Machine) finish(code int, reason string) {
	m.code = code
	m.enter(StateEnded, 0)
	m.do(Finish{Code: code, Reason: reason})
}

func describe(procs []wire.Proc) string {
	if len(procs) == 0 {
		return "which ones is not known"
	}
	var all []string
	for _, p := range procs {
		all = append(all, fmt.Sprintf("%d %s (%s)", p.PID, p.Comm, p.State))
	}
	return strings.Join(all, ", ")
}

func how(s *wire.Status) string {
	if s == nil {
		return ""
	}
	return ": " + s.String()
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// round shows a duration as a person would say it.
func round(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond)
	default:
		return d.Round(time.Second)
	}
}
