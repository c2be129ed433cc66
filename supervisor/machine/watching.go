package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sglaunch/phases"
)

// An attempt that runs is watched from many sides. Each source speaks here in
// a method of its own; what their silence means is verdict.go's matter.

// seen takes a fact from the output.
func (m *Machine) seen(o phases.Observation) {
	if o.Kind == phases.KindDrain && m.run.Drain.IsZero() && !m.run.Signalled && m.spawnedYet() {
		m.run.Drain = m.now
	}
	if !m.running() {
		m.late(o)
		return
	}
	m.run.Heard = m.now
	switch o.Kind {
	case phases.KindFault:
		m.fault(o)
	case phases.KindNote, phases.KindDrift:
		m.note(o)
	case phases.KindDrain:
		m.say("stopping", "the server began an orderly shutdown that sglaunch did not ask for")
	case phases.KindReady:
		m.serverReady("the server says that it is ready", o.Rule)
	case phases.KindActivity:
		m.moved(o.Activity)
		m.run.Activity = o.Activity
		m.say("progress", "", "activity", o.Activity, "rank", o.Rank)
	case phases.KindPhase, phases.KindServing:
		m.moved(o.Rule)
	case phases.KindProgress:
		m.moved(o.Rule)
		m.tellProgress(o)
	}
	m.reach(o)
	m.refute(o)
}

// late follows how far a server had come that is gone already: its end may
// overtake the lines before it.
func (m *Machine) late(o phases.Observation) {
	if m.run.Unasked && o.Phase > m.run.Phase && o.Phase < phases.Ready {
		m.leavePhase(o.Phase)
	}
}

// moved takes note of proof of progress.
func (m *Machine) moved(by string) {
	m.run.Quiet = m.quiet()
	m.run.Moved, m.run.MovedBy = m.now, by
	delete(m.run.Warned, "quiet")
}

// reach follows the phase that an observation tells. A launch never moves
// back: a second pass (a draft model) repeats phases that are over.
func (m *Machine) reach(o phases.Observation) {
	m.run.SGLang = m.run.SGLang || o.Phase > phases.Starting || o.Kind == phases.KindReady
	if o.Phase <= m.run.Phase || o.Phase >= phases.Ready {
		return // ready is told by serverReady alone, serving by working
	}
	m.goOn(o.Phase, o.Rank)
}

// working: somebody else than we has it work. Our own requests look the same
// in the output.
func (m *Machine) working() {
	if m.state == StateUp && m.run.Phase < phases.Serving {
		m.goOn(phases.Serving, "")
	}
}

// goOn tells the next phase.
func (m *Machine) goOn(next phases.Phase, rank string) {
	before, took, quiet := m.leavePhase(next)
	delete(m.run.Warned, "timeout")
	m.say("phase", fmt.Sprintf("%s (%s took %s)", next, before, round(took)),
		"phase", next.String(), "before", before.String(), "seconds", took.Seconds(), "quiet", quiet.Seconds(), "rank", rank)
}

// leavePhase goes on to the next phase and tells of the one before how long it
// took, and the longest stretch of it in which nothing moved.
func (m *Machine) leavePhase(next phases.Phase) (before phases.Phase, took, quiet time.Duration) {
	before, took, quiet = m.run.Phase, m.now.Sub(m.run.PhaseAt), m.quiet()
	m.run.Phase, m.run.PhaseAt, m.run.Quiet = next, m.now, 0
	return before, took, quiet
}

// quiet is the longest stretch of the phase in which nothing moved, the one
// that lasts included.
func (m *Machine) quiet() time.Duration {
	return max(m.run.Quiet, m.now.Sub(later(m.run.Moved, m.run.PhaseAt)))
}

// refute takes a fatal line back: the rank that spoke it went on, or all did.
// Another rank that still loads refutes nothing.
func (m *Machine) refute(o phases.Observation) {
	f := m.run.Fatal
	if f == nil || o.Kind == phases.KindFault || o.Kind == phases.KindNote {
		return
	}
	if o.Rank == f.Rank || o.Phase > f.Phase || o.Kind == phases.KindServing {
		m.run.Fatal = nil
	}
}

// fault takes a failure-indicating line. It colours the verdict; it kills
// nothing unless it is SGLang's own fatal word and nothing refutes it.
func (m *Machine) fault(o phases.Observation) {
	if o.Echo {
		return
	}
	if o.Certain && m.run.Fatal == nil {
		m.run.Fatal, m.run.FatalAt = &o, m.now
		delete(m.run.Warned, "fatal")
	}
	if m.tell(o.Rule+o.Rank, time.Minute) {
		m.say("fault", fmt.Sprintf("line %d, %s: %s", o.Line, o.Rank, o.Text),
			"rule", o.Rule, "cause", o.Cause, "line", o.Line, "rank", o.Rank, "certain", o.Certain)
	}
}

func (m *Machine) note(o phases.Observation) {
	if m.tell(o.Rule, time.Minute) {
		m.say("fault", o.Text, "rule", o.Rule, "line", o.Line, "rank", o.Rank, "severity", string(o.Kind))
	}
}

// tell bounds how often a person hears of one thing: a server under load may
// print the same warning a thousand times a second.
func (m *Machine) tell(what string, every time.Duration) bool {
	if last, ok := m.run.Told[what]; ok && m.now.Sub(last) < every {
		return false
	}
	if m.run.Told == nil {
		m.run.Told = map[string]time.Time{}
	}
	m.run.Told[what] = m.now
	return true
}

func (m *Machine) tellProgress(o phases.Observation) {
	if m.tell("progress", 10*time.Second) || o.Done == o.Total {
		m.say("progress", counted(o),
			"done", o.Done, "total", o.Total, "unit", o.Unit, "rank", o.Rank, "phase", o.RankPhase.String())
	}
}

// counted says a counter as a person would: "weights 41 of 83".
func counted(o phases.Observation) string {
	what := cmp.Or(o.Unit, o.RankPhase.String())
	if o.Unit == "shards" {
		what = "weights"
	}
	return fmt.Sprintf("%s %d of %d", what, o.Done, o.Total)
}

// answered takes HTTP's word: before ready where the output has none, after
// ready as one voice of several.
func (m *Machine) answered(b Answered) {
	switch {
	case m.state == StateStarting && b.Ready && !m.run.spawning():
		m.serverReady(fmt.Sprintf("%s answers %d", b.Endpoint, b.Status), b.Endpoint)
	case m.state != StateUp:
	case b.Bad == "":
		m.run.Unwell, m.run.Bad = time.Time{}, ""
		if b.Ready { // else HTTP alone is up, which takes no fatal word back
			m.run.Fatal = nil
		}
		delete(m.run.Warned, "unwell")
	case m.run.Unwell.IsZero():
		m.run.Unwell, m.run.Bad = m.now, fmt.Sprintf("%s: %s", b.Endpoint, b.Bad)
	}
}

func (m *Machine) serverReady(how, rule string) {
	if m.run.ready() {
		return
	}
	took := m.now.Sub(m.run.SpawnedAt)
	before, last, quiet := m.leavePhase(phases.Ready)
	m.run.ReadyAt = m.now
	m.run.Fatal = nil
	text := fmt.Sprintf("ready after %s: %s", round(took), how)
	degraded := m.Degraded()
	if len(degraded) > 0 {
		text = fmt.Sprintf("ready after %s, degraded (%s): %s", round(took), strings.Join(degraded, "; "), how)
		m.say("degraded", "", "what", degraded, "changes", m.Changes())
	}
	if m.checkable() {
		text += "; its answers are checked first"
	}
	m.say("server_ready", text, "seconds", took.Seconds(), "rule", rule, "degraded", len(degraded) > 0,
		"before", before.String(), "phase_seconds", last.Seconds(), "quiet", quiet.Seconds())
	m.check()
}

// proven takes the verdict on a patch's effect and applies its policy.
func (m *Machine) proven(b Proven) {
	m.say("patch", fmt.Sprintf("patch %s: %s%s", b.Patch, b.Effect, because(b.Reason)), "patch", b.Patch, "effect", b.Effect)
	i := slices.IndexFunc(m.run.Patches, func(p ActivePatch) bool { return p.Name == b.Patch })
	if i < 0 || !b.Enforce || b.Effect == "effective" || !m.running() {
		return
	}
	policy := m.run.Patches[i].OnUnproven
	if policy != "fail" && policy != "relaunch" {
		m.odd(fmt.Sprintf("patch %s: %s", b.Patch, b.Effect))
		return
	}
	why := fmt.Sprintf("patch %s did not take effect%s", b.Patch, because(b.Reason))
	m.judge(bound{name: "unproven " + b.Patch, outcome: OutcomeUnhealthy, cause: "patch_ineffective", evidence: ofProcesses, why: why})
	if m.run.Ending {
		m.run.Culprit, m.run.Proven = b.Patch, true
		if policy == "fail" {
			m.run.Patchless = why
		}
	}
}

// odd notes what differs, in this attempt, from what was asked for.
func (m *Machine) odd(what string) {
	if !slices.Contains(m.run.Odd, what) {
		m.run.Odd = append(m.run.Odd, what)
	}
}

// rankGone takes the death of a process that the server needs. SGLang gets a
// moment to notice by itself: its own words explain more than a kill.
func (m *Machine) rankGone(b RankGone) {
	if !m.running() {
		return
	}
	m.say("fault", fmt.Sprintf("%s (process %d) is gone%s", b.Rank, b.Proc.PID, how(b.Status)), "rank", b.Rank, "pid", b.Proc.PID)
	if m.run.Gone == nil {
		m.run.Gone, m.run.GoneAt = &b, m.now
	}
}

// hardware takes the word of driver and kernel, which needs no confirmation. It
// may come after the death that it explains; but an Xid that follows our own
// kill may be its work.
func (m *Machine) hardware(b Hardware) {
	m.say("fault", b.Text, "gpu", b.GPU, "xid", b.Xid)
	if !b.Lost && !b.Person {
		return
	}
	cause := "xid"
	if b.Lost {
		cause = "gpu_lost"
	}
	if m.running() {
		m.judge(bound{name: "hardware", outcome: OutcomeCrashed, cause: cause, evidence: ofProcesses, why: b.Text})
	}
	if m.run.Ending && !m.run.Asked && (b.Lost || !m.run.Signalled) {
		m.run.Cause, m.run.Why, m.run.Person, m.run.Proven = cause, b.Text, true, true
	}
}
