package supervisor

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sglaunch/phases"
)

// Exit codes of sglaunch: an interface to service managers and schedulers.
const (
	codeStopped = 0  // as asked, or by somebody's drain
	codeLater   = 10 // gave up; trying later may help
	codeNever   = 11 // no relaunch can help; do not requeue
	codePatch   = 12 // a patch was not applied, not proven or not reverted
	codeHeld    = 13 // processes or GPU memory would not go, or hardware needs a person
)

// Decision is what follows an attempt, with its reason in a sentence that a
// person would say.
type Decision struct {
	Again   bool
	Delay   time.Duration
	Suspect string // patch that the next attempt runs without
	Code    int    // exit code, where there is no next attempt
	Reason  string
}

// budget is what keeps a crash loop from burning the night.
type budget struct {
	spawns     []time.Time // within the window
	last       string      // fingerprint of the newest cause
	same       int         // how often in a row
	furthest   int         // phase, counted from 1; 0 = none yet
	noProgress int         // attempts in a row that did not get further
	failures   int         // in a row: the exponent of the backoff
}

func (b *budget) spawn(at time.Time) { b.spawns = append(b.spawns, at) }

// healthy forgets the past after a stretch of service.
func (b *budget) healthy() { *b = budget{spawns: b.spawns[max(len(b.spawns)-1, 0):]} }

// note takes one failed attempt.
func (b *budget) note(fingerprint string, reached phases.Phase) {
	b.failures++
	if fingerprint == b.last {
		b.same++
	} else {
		b.last, b.same = fingerprint, 1
	}
	if got := int(reached) + 1; got > b.furthest {
		b.furthest, b.noProgress = got, 0
	} else {
		b.noProgress++
	}
}

// within counts the spawns of the last window.
func (b *budget) within(now time.Time, window time.Duration) int {
	kept := b.spawns[:0]
	for _, at := range b.spawns {
		if window <= 0 || now.Sub(at) < window {
			kept = append(kept, at)
		}
	}
	b.spawns = kept
	return len(kept)
}

// policy decides what follows the attempt that has just ended. Default is to
// try again; giving up needs a reason.
func (m *Machine) policy() Decision {
	r := &m.run
	switch {
	case r.held != "":
		return Decision{Code: codeHeld, Reason: r.held}
	case r.refusal == codePatch:
		return Decision{Code: codePatch, Reason: r.why}
	case m.stop != nil:
		return Decision{Code: codeStopped, Reason: "stopped as asked: " + m.stop.By}
	case m.passesThrough():
		return m.passThrough()
	case r.outcome == OutcomeStopped && !m.opt.OnForeignStop && m.opt.Policy != "always":
		return Decision{Code: codeStopped, Reason: "somebody else drained the server; on_foreign_stop is off"}
	}
	m.budget.note(m.fingerprint(), r.reached)
	return m.relaunch()
}

// passesThrough reports whether this command is no SGLang server: its own exit
// status then is the answer.
func (m *Machine) passesThrough() bool {
	return !m.opt.SGLang && !m.run.diagnosis.SGLang && m.run.exited != nil && m.run.outcome == OutcomeCrashed
}

func (m *Machine) passThrough() Decision {
	s := *m.run.exited
	code := s.Code
	if s.Signal != 0 {
		code = 128 + s.Signal
	}
	return Decision{Code: code, Reason: fmt.Sprintf("the command is no SGLang server; its own end is passed on: %s", s)}
}

// relaunch decides between another attempt and giving up, after a failure.
func (m *Machine) relaunch() Decision {
	cause, known := phases.LookupCause(m.run.cause)
	why := m.causeText()
	if m.opt.Policy == "never" {
		return Decision{Code: m.codeFor(cause), Reason: why + "; [relaunch] policy is never"}
	}
	if suspect, reason := m.suspect(); suspect != "" {
		if d := m.spent(cause, why); d != nil {
			return *d
		}
		m.budget.same = 0 // the next attempt is another launch
		return Decision{Again: true, Delay: m.pause(), Suspect: suspect,
			Reason: fmt.Sprintf("%s; %s, so it runs without it", why, reason)}
	}
	if known && m.hopeless(cause) {
		return Decision{Code: m.codeFor(cause), Reason: why + "; no relaunch helps" + remedy(cause)}
	}
	if m.opt.Follower {
		return Decision{Code: m.codeFor(cause), Reason: why + "; one node of several ends at once, so that all start together"}
	}
	if d := m.spent(cause, why); d != nil {
		return *d
	}
	return Decision{Again: true, Delay: m.pause(), Reason: why + "; " + m.hope(cause)}
}

// hopeless: established evidence that an unchanged relaunch cannot help.
func (m *Machine) hopeless(c phases.Cause) bool {
	if m.run.person || c.Cure == phases.CurePerson {
		return m.run.person || m.certain()
	}
	// A change is needed, and nobody listed one.
	return c.Cure == phases.CureChange && c.Retry == phases.RetryNo && m.certain()
}

// certain: the evidence for the cause is the output's own plain word, or it is
// none of the output's at all (a refusal by preflight, a driver's event).
func (m *Machine) certain() bool {
	return m.run.outcome == OutcomeRefused || m.run.diagnosis.Cause != m.run.cause || m.run.diagnosis.Confidence == "high"
}

// spent tells which budget is used up, if one is.
func (m *Machine) spent(c phases.Cause, why string) *Decision {
	give := func(format string, args ...any) *Decision {
		return &Decision{Code: m.codeFor(c), Reason: why + "; " + fmt.Sprintf(format, args...) + remedy(c)}
	}
	if n := m.budget.within(m.now, m.opt.Window); n >= m.opt.Attempts {
		return give("%d launches in %s are used up", n, m.opt.Window)
	}
	if m.run.outcome == OutcomeRefused && m.budget.failures >= m.opt.Attempts {
		return give("refused %d times", m.budget.failures)
	}
	if m.opt.SameCause > 0 && m.budget.same >= m.opt.SameCause {
		return give("the same cause %d times in a row", m.budget.same)
	}
	if m.opt.NoProgress > 0 && m.budget.noProgress >= m.opt.NoProgress {
		return give("%d attempts without getting further than %s", m.budget.noProgress, phases.Phase(m.budget.furthest-1))
	}
	return nil
}

// hope says why trying again has a chance.
func (m *Machine) hope(c phases.Cause) string {
	switch {
	case c.Cure == phases.CureWait:
		return "what it waits for may come back"
	case c.Retry == phases.RetryYes:
		return "this usually passes on a relaunch"
	case c.Cure == phases.CureChange:
		return "a relaunch may help though a change would be surer" + remedy(c)
	default:
		return "a relaunch may help"
	}
}

// suspect names the active patch that the failure points to, and why.
func (m *Machine) suspect() (name, reason string) {
	if m.run.outcome == OutcomeStopped || m.run.outcome == OutcomeRefused {
		return "", ""
	}
	for _, p := range m.run.patches {
		for _, file := range p.Files {
			for _, frame := range m.run.diagnosis.Frames {
				if frame == file || strings.HasSuffix(file, frame) || sameModule(file, frame) {
					return p.Name, fmt.Sprintf("the failure's traceback runs through %s, which patch %s changed", filepath.Base(file), p.Name)
				}
			}
		}
	}
	for _, p := range m.run.patches {
		if p.Proof != "" && p.Proof == m.run.phase.String() && !m.run.ready() {
			return p.Name, fmt.Sprintf("it failed in %s, the phase that patch %s enables", p.Proof, p.Name)
		}
	}
	for _, p := range m.run.patches {
		if m.run.cause == "patch_ineffective" || m.run.cause == "patch_failed" {
			return p.Name, fmt.Sprintf("patch %s is at fault", p.Name)
		}
	}
	return "", ""
}

// sameModule compares by the path below the installed package: a traceback
// may show another prefix (a link, an editable install).
func sameModule(a, b string) bool {
	const root = "/sglang/"
	i, j := strings.LastIndex(a, root), strings.LastIndex(b, root)
	return i >= 0 && j >= 0 && a[i:] == b[j:]
}

// pause is the time before the next attempt.
func (m *Machine) pause() time.Duration {
	b := m.opt.Backoff
	d := float64(b.Initial) * math.Pow(b.Factor, float64(max(m.budget.failures, 1)-1))
	if b.Max > 0 {
		d = math.Min(d, float64(b.Max))
	}
	d *= 1 + b.Jitter*(2*m.roll-1)
	return time.Duration(d)
}

var particulars = regexp.MustCompile(`0x[0-9a-fA-F]+|\d+(\.\d+)?|/[^\s'"]+`)

// fingerprint identifies a cause over attempts: rank, time, address, line
// number, path and sizes never enter it.
func (m *Machine) fingerprint() string {
	switch m.run.cause {
	case "", "unknown", "scheduler_exception":
		text := particulars.ReplaceAllString(m.run.diagnosis.Text, "#")
		return fmt.Sprintf("%s|%s|%s|%s", m.run.outcome, m.run.cause, m.run.phase, text)
	}
	return m.run.cause
}

// codeFor is the exit code of giving up on a cause.
func (m *Machine) codeFor(c phases.Cause) int {
	switch {
	case c.Group == "patch":
		return codePatch
	case c.Cure == phases.CurePerson && c.Group == "hardware":
		return codeHeld
	case c.Cure == phases.CurePerson, m.run.person:
		return codeNever
	case c.Cure == phases.CureChange && c.Retry == phases.RetryNo && m.certain():
		return codeNever
	}
	return codeLater
}

// causeText is the failure in a sentence.
func (m *Machine) causeText() string {
	r := &m.run
	name := or(r.cause, "unknown")
	if r.diagnosis.Text != "" && r.diagnosis.Cause == r.cause {
		where := ""
		if r.diagnosis.Rank != "" && r.diagnosis.Rank != "main" {
			where = " on " + r.diagnosis.Rank
		}
		return fmt.Sprintf("%s%s in %s: %s", name, where, r.phase, r.diagnosis.Text)
	}
	return fmt.Sprintf("%s: %s", name, r.why)
}

func remedy(c phases.Cause) string {
	if c.Remedy == "" {
		return ""
	}
	return " (" + c.Remedy + ")"
}
