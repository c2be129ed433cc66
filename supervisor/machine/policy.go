package machine

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"sglaunch/phases"
)

// Exit codes of sglaunch: an interface to service managers and schedulers.
const (
	CodeStopped = 0  // as asked, or by somebody's drain
	CodeLater   = 10 // gave up; trying later may help
	CodeNever   = 11 // no relaunch can help; do not requeue
	CodePatch   = 12 // a patch was not applied, not proven or not reverted
	CodeHeld    = 13 // processes or GPU memory would not go, or hardware needs a person
)

// Decision is what follows an attempt, with its reason in a sentence that a
// person would say.
type Decision struct {
	Again  bool
	Delay  time.Duration
	Code   int // exit code, where there is no next attempt
	Reason string

	Suspects []string // patches that no further attempt applies
	Bisect   *bisect  // patches that the next attempt goes without, to find out
	Step     *step    // what a rung changes
	Undo     bool     // the newest rung is taken back
}

// policy decides what follows the attempt that has just ended. Default is to
// try again; giving up needs a reason.
func (m *Machine) policy() Decision {
	r := &m.run
	switch {
	case r.Held != "":
		return Decision{Code: CodeHeld, Reason: r.Held}
	case r.Spoilt:
		return Decision{Code: CodePatch, Reason: r.Patchless}
	case m.stop != nil:
		return Decision{Code: CodeStopped, Reason: "stopped as asked: " + m.stop.By}
	case r.Patchless != "":
		return Decision{Code: CodePatch, Reason: r.Patchless}
	case r.Restart != nil:
		m.budget = budget{}
		return Decision{Again: true, Reason: "restart as asked: " + r.Restart.By}
	case m.passesThrough():
		return m.passThrough()
	case r.Outcome == OutcomeStopped && !m.opt.OnForeignStop && m.opt.Policy != "always":
		return Decision{Code: CodeStopped, Reason: drainedWhy + "; on_foreign_stop is off"}
	case r.Outcome == OutcomeStopped:
		return m.restart()
	}
	return m.relaunch()
}

// passesThrough reports whether this command is no SGLang server: its own exit
// status then is the answer.
func (m *Machine) passesThrough() bool {
	r := &m.run
	return !m.opt.SGLang && !r.SGLang && !r.Diagnosis.SGLang && r.Exited != nil && r.Outcome == OutcomeCrashed && m.stop == nil
}

// outcome is how the attempt has ended, all things known. A command that is no
// SGLang server and ends with status 0 has done what it was to do.
func (m *Machine) outcome() (o Outcome, cause string) {
	if m.passesThrough() && m.passThrough().Code == CodeStopped {
		return OutcomeStopped, ""
	}
	return m.run.Outcome, m.run.Cause
}

func (m *Machine) passThrough() Decision {
	s := *m.run.Exited
	code := s.Code
	if s.Signal != 0 {
		code = 128 + s.Signal
	}
	return Decision{Code: code, Reason: fmt.Sprintf("the command ended: %s, passed on since it is no SGLang server", s)}
}

// restart brings back a server that somebody drained. That is no failure, but
// it may not go on for ever either.
func (m *Machine) restart() Decision {
	if n, _ := m.budget.within(m.now, m.opt.Window); n >= m.opt.Attempts {
		return Decision{Code: CodeLater, Reason: drainedWhy + "; " + m.budget.usedUp(n, m.opt.Window)}
	}
	return Decision{Again: true, Delay: m.pause(false), Reason: drainedWhy + "; it is started again"}
}

// relaunch goes down the ladder: what the failure points to is changed first;
// what no relaunch can help ends the launch; what is left is tried again while
// there is budget.
func (m *Machine) relaunch() Decision {
	cause, _ := phases.LookupCause(m.run.Cause)
	why, waiting := m.causeText(), comesBack(cause)
	m.budget.note(m.now, m.fingerprint(), m.run.Phase, waiting)
	end := func(because string) Decision { return Decision{Code: m.codeFor(cause), Reason: why + "; " + because} }

	if m.opt.Policy == "never" {
		return end("[relaunch] policy is never")
	}
	change, ok := m.change(cause)
	switch {
	case !ok && m.hopeless(cause):
		if m.run.Outcome == OutcomeRefused {
			return end("no relaunch helps") // the refusal has said what to do
		}
		return end("no relaunch helps" + remedy(cause))
	case m.opt.Follower:
		return end("one node of several ends at once, so that all start together")
	}
	if ok { // the next attempt is another launch
		m.budget.Same, m.budget.NoProgress = 0, 0
	}
	if used := m.exhausted(waiting); used != "" {
		return end(used + remedy(cause))
	}
	if !ok {
		change.Reason = m.hope(cause)
	}
	change.Again, change.Delay, change.Reason = true, m.pause(waiting), why+"; "+change.Reason
	return change
}

// comesBack: a fabric, a host, a network or a neighbour's memory comes back by
// itself. A port that somebody else holds needs a person sooner or later.
func comesBack(c phases.Cause) bool {
	return c.Cure == phases.CureWait && c.Group == "hardware" || c.Name == "hf_network" || c.Name == "gpu_memory_held"
}

// change finds what the next attempt should do otherwise.
func (m *Machine) change(c phases.Cause) (Decision, bool) {
	if d, ok := m.undo(); ok {
		return d, true
	}
	suspicion, sure := m.suspicion(c)
	if len(suspicion.Suspects) > 0 && sure {
		return suspicion, true
	}
	if d, ok := m.rung(c); ok {
		return d, true
	}
	if len(suspicion.Suspects) > 0 {
		return suspicion, true
	}
	return m.onlyChange(c)
}

// take carries a decision over into the next attempt.
func (m *Machine) take(d Decision) {
	m.suspects = append(m.suspects, d.Suspects...)
	if d.Bisect != nil {
		m.bisect = *d.Bisect
	}
	if d.Undo {
		m.steps = m.steps[:len(m.steps)-1]
	}
	if d.Step != nil {
		m.climb(*d.Step)
	}
	for i := range m.steps {
		m.steps[i].Fresh = d.Step != nil && i == len(m.steps)-1
	}
}

// Change is one thing in which an attempt runs otherwise than was asked for.
type Change struct {
	Rung string `json:"rung,omitempty"` // "" = it came about by itself
	Text string `json:"text"`           // for a person
}

// Changes lists what differs from what was asked for; empty = nothing.
func (m *Machine) Changes() []Change {
	var all []Change
	for _, name := range m.without() {
		all = append(all, Change{"revert-patch", "without patch " + name})
	}
	for _, s := range m.steps {
		all = append(all, Change{s.Name, s.Text})
	}
	for _, text := range m.run.Odd {
		all = append(all, Change{"", text})
	}
	return all
}

// Degraded is Changes in words.
func (m *Machine) Degraded() []string {
	var all []string
	for _, c := range m.Changes() {
		all = append(all, c.Text)
	}
	return all
}

// hopeless: established evidence that an unchanged relaunch cannot help, or
// that a change is needed and nobody listed one.
func (m *Machine) hopeless(c phases.Cause) bool {
	if m.run.Person {
		return true
	}
	needsOther := c.Cure == phases.CurePerson || c.Cure == phases.CureChange && c.Retry == phases.RetryNo
	return needsOther && m.certain()
}

// certain: the evidence for the cause is the output's own plain word, or comes
// from a better source than the output (preflight, the driver). Words that only
// name a cause are proven by the end of the process that said them: after an
// exception that nobody caught Python exits with a status, not by a signal.
func (m *Machine) certain() bool {
	r := &m.run
	if r.Proven || r.Diagnosis.Cause != r.Cause {
		return r.Proven
	}
	ended := r.Exited != nil && r.Exited.Signal == 0 && r.Exited.Code != 0 && !r.Asked
	return r.Diagnosis.Confidence == "high" || r.Diagnosis.Confidence == "medium" && ended
}

// hope says why trying again has a chance.
func (m *Machine) hope(c phases.Cause) string {
	switch {
	case c.Cure == phases.CureWait, comesBack(c):
		return "what it waits for may come back"
	case c.Retry == phases.RetryYes:
		return "this usually passes on a relaunch"
	case c.Cure == phases.CureChange:
		return "a relaunch may help though a change would be surer" + remedy(c)
	default:
		return "a relaunch may help"
	}
}

// pause is the time before the next attempt. A resource that comes back does
// so in minutes: each spawn that met its absence makes the pause longer, and
// where the window is full the pause lasts until there is room.
func (m *Machine) pause(waiting bool) time.Duration {
	b := m.opt.Backoff
	d := float64(b.Initial) * math.Pow(b.Factor, float64(max(m.budget.Failures, 1)-1))
	if b.Max > 0 {
		d = math.Min(d, float64(b.Max))
	}
	if waiting && m.run.Outcome != OutcomeRefused && len(m.beside) == 0 { // a neighbour is looked for without a spawn
		d = math.Max(d, float64(b.Max)*float64(m.budget.Waits))
	}
	d *= 1 + b.Jitter*(2*m.roll-1)
	pause := time.Duration(math.Min(d, math.MaxInt64/2))
	if n, free := m.budget.within(m.now, m.opt.Window); m.waited() && n >= m.opt.Attempts {
		pause = max(pause, free.Sub(m.now))
	}
	return pause
}

// codeFor is the exit code of giving up on a cause.
func (m *Machine) codeFor(c phases.Cause) int { return CodeOf(c, m.run.Person, m.certain()) }

// CodeOf is the exit code of giving up on a cause. person: it is established that
// nothing but a person helps; certain: there is no doubt about the cause.
func CodeOf(c phases.Cause, person, certain bool) int {
	person = person || c.Cure == phases.CurePerson
	switch {
	case c.Group == "patch":
		return CodePatch
	case person && c.Group == "hardware":
		return CodeHeld
	case person, c.Cure == phases.CureChange && c.Retry == phases.RetryNo && certain:
		return CodeNever
	}
	return CodeLater
}

// causeText is the failure in a sentence.
func (m *Machine) causeText() string {
	r := &m.run
	name := cmp.Or(r.Cause, "unknown")
	if r.Diagnosis.Text == "" || r.Diagnosis.Cause != r.Cause || r.Proven {
		return fmt.Sprintf("%s: %s%s", name, r.Why, r.Memory.Beside)
	}
	where := ""
	if r.Diagnosis.Rank != "" && r.Diagnosis.Rank != "main" {
		where = " on " + r.Diagnosis.Rank
	}
	return fmt.Sprintf("%s%s in %s: %s%s", name, where, r.Phase, strings.TrimSpace(r.Diagnosis.Text), r.Memory.Beside)
}

func remedy(c phases.Cause) string {
	if c.Remedy == "" {
		return ""
	}
	return " (" + c.Remedy + ")"
}
