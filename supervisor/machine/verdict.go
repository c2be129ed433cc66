package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sglaunch/phases"
)

// Slow or stuck. Silence proves nothing; progress is whatever moved that the
// phase expects to move. Each source alone may be blind, so any one suffices.

// What the evidence for a verdict rests on; `act` decides by it.
const (
	ofStart     = iota // limits of the start
	ofProcesses        // a process, a GPU, the server's own fatal word
	ofHealth           // HTTP and silence after ready
)

// bound is a limit of a running attempt: when it passes, and what that means.
type bound struct {
	name     string
	at       time.Time
	outcome  Outcome
	cause    string
	why      string // one sentence; made by explain when the bound has passed
	evidence int
}

// bounds lists what limits the attempt right now, the surest first. What was
// told and not acted on is left out until something changes.
func (m *Machine) bounds() []bound {
	return slices.DeleteFunc(m.allBounds(), func(b bound) bool { return m.run.Warned[b.name] })
}

// withheld is the surest verdict that was told and not acted on, with what is
// known now; "" = there is none.
func (m *Machine) withheld() string {
	for _, b := range m.allBounds() {
		if m.running() && m.run.Warned[b.name] && !m.now.Before(b.at) {
			return fmt.Sprintf("%s (act = %q would end it)", m.explain(b), m.needed(b))
		}
	}
	return ""
}

func (m *Machine) allBounds() []bound {
	r := &m.run
	if r.spawning() {
		return []bound{{name: "spawn", at: r.SpawnAsked.Add(spawnLimit + AnswerMargin), outcome: OutcomeTimedOut, cause: "host_stall"}}
	}
	var all []bound
	add := func(b bound) { all = append(all, b) }
	if r.Fatal != nil {
		add(bound{name: "fatal", at: r.FatalAt.Add(fatalGrace), outcome: OutcomeCrashed, cause: r.Fatal.Cause, evidence: ofProcesses})
	}
	if r.Gone != nil {
		add(bound{name: "gone", at: m.goneBound(), outcome: OutcomeCrashed, cause: m.causeOfRank(), evidence: ofProcesses})
	}
	if m.state == StateChecking {
		add(bound{name: "check", at: r.CheckAsked.Add(m.opt.Check.Limit + AnswerMargin)})
	} else if r.ready() {
		m.boundsOfService(add)
	} else if m.opt.SGLang || r.SGLang {
		m.boundsOfStart(add) // what another command does in silence is its own affair
	}
	return all
}

func (m *Machine) boundsOfStart(add func(bound)) {
	r, limit := &m.run, m.opt.limit(m.run.Phase)
	if limit.Quiet > 0 {
		add(bound{name: "quiet", at: later(r.Moved, r.PhaseAt).Add(limit.Quiet), outcome: OutcomeHung, cause: hangCause(r.Phase)})
	}
	if limit.Timeout > 0 {
		add(bound{name: "timeout", at: r.PhaseAt.Add(limit.Timeout), outcome: OutcomeTimedOut, cause: hangCause(r.Phase)})
	}
	if m.opt.ReadyTimeout > 0 {
		add(bound{name: "ready_timeout", at: r.SpawnedAt.Add(m.opt.ReadyTimeout), outcome: OutcomeTimedOut, cause: hangCause(r.Phase)})
	}
}

func (m *Machine) boundsOfService(add func(bound)) {
	r := &m.run
	if !r.Unwell.IsZero() {
		if r.Drain.IsZero() { // a draining server answers 503
			add(bound{name: "unwell", at: later(r.Unwell, r.Moved).Add(m.opt.Unwell), outcome: OutcomeUnhealthy, cause: "serving_hang", evidence: ofHealth})
		}
		return
	}
	if !r.Healthy {
		add(bound{name: "healthy", at: r.AnnouncedAt.Add(m.opt.HealthyAfter)})
	}
}

// goneBound gives SGLang time to notice a dead rank, and a server that drains
// for somebody else time to finish: its schedulers leave first.
func (m *Machine) goneBound() time.Time {
	if !m.run.Drain.IsZero() {
		return later(m.run.GoneAt, m.run.Drain).Add(m.opt.Stop.Drain + m.opt.Stop.Grace)
	}
	return m.run.GoneAt.Add(rankGrace)
}

// nextBound is the earliest moment at which something must be decided.
func (m *Machine) nextBound() time.Time {
	var next time.Time
	for _, b := range m.bounds() {
		if next.IsZero() || b.at.Before(next) {
			next = b.at
		}
	}
	return next
}

// boundsPassed acts on every bound that has passed, the surest first, until
// the attempt's end has begun.
func (m *Machine) boundsPassed() {
	for _, b := range m.bounds() {
		if m.now.Before(b.at) {
			continue
		}
		switch b.name {
		case "healthy":
			m.healthy()
			continue
		case "check":
			m.checkOverdue()
			continue
		}
		b.why = m.explain(b)
		if m.judge(b); m.run.Ending {
			return
		}
	}
}

// healthy: it served long enough for the past to be forgotten.
func (m *Machine) healthy() {
	m.run.Healthy = true
	m.budget.forget()
	m.bisect = bisect{Out: m.bisect.Out, Over: true}
	m.say("decision", "", "reason", "healthy for "+m.opt.HealthyAfter.String()+": budgets start anew")
}

// judge ends the attempt where `act` allows it, and tells what it would have
// done where it does not: while starting sglaunch acts on any evidence, after
// ready on that of processes alone unless act is "all".
func (m *Machine) judge(b bound) {
	if m.opt.Act == "all" || m.opt.Act == m.needed(b) || b.name == "spawn" { // there is no server that could be spared
		m.fail(b)
		return
	}
	if m.run.Warned[b.name] {
		return
	}
	if m.run.Warned == nil {
		m.run.Warned = map[string]bool{}
	}
	m.run.Warned[b.name] = true
	m.say("verdict", fmt.Sprintf("would have ended the attempt (act = %s): %s", m.opt.Act, b.why),
		"outcome", string(b.outcome), "cause", b.cause, "phase", m.run.Phase.String(), "acted", false)
}

// needed is the least `act` that allows to act on a bound.
func (m *Machine) needed(b bound) string {
	if b.evidence == ofProcesses || !m.run.announced() {
		return "start"
	}
	return "all"
}

// explain is the verdict in a sentence, with its evidence in words and numbers.
func (m *Machine) explain(b bound) string {
	r, limit := &m.run, m.opt.limit(m.run.Phase)
	switch b.name {
	case "spawn":
		return "the server could not be spawned in " + spawnLimit.String()
	case "fatal":
		return fmt.Sprintf("SGLang reported a fatal fault %s ago and did not end: %s", round(m.now.Sub(r.FatalAt)), r.Fatal.Text)
	case "gone":
		return fmt.Sprintf("%s is gone%s, and the server lives on without it", r.Gone.Rank, how(r.Gone.Status))
	case "quiet":
		quiet := m.now.Sub(later(r.Moved, r.PhaseAt))
		return fmt.Sprintf("quiet %s in %s (patience %s); %s", round(quiet), r.Phase, limit.Quiet, m.standing())
	case "timeout":
		return fmt.Sprintf("%s for %s, over its limit of %s, though something moved (%s)", r.Phase,
			round(m.now.Sub(r.PhaseAt)), limit.Timeout, cmp.Or(r.MovedBy, "nothing yet"))
	case "unwell":
		return fmt.Sprintf("%s, for %s, and nothing moved; %s", r.Bad, round(m.now.Sub(r.Unwell)), m.standing())
	default: // ready_timeout
		return fmt.Sprintf("not ready after %s; in %s for %s", m.opt.ReadyTimeout, r.Phase, round(m.now.Sub(r.PhaseAt)))
	}
}

// standing says what the sources show of something that does not move.
func (m *Machine) standing() string {
	a := m.run.Reading
	if m.run.ReadAt.IsZero() {
		return "processes and GPUs could not be read"
	}
	parts := append([]string{fmt.Sprintf("CPU %.1f", m.run.Cores)}, spinners(a.GPUs)...)
	if len(a.Compilers) == 0 {
		parts = append(parts, "no compiler")
	} else {
		parts = append(parts, "compilers without CPU: "+strings.Join(a.Compilers, ", "))
	}
	if len(a.Blocked) > 0 {
		parts = append(parts, "in uninterruptible sleep: "+strings.Join(a.Blocked, ", "))
	}
	if len(a.Missing) > 0 {
		parts = append(parts, "not known: "+strings.Join(slices.Sorted(slices.Values(a.Missing)), ", "))
	}
	return strings.Join(parts, "; ") + m.burden()
}

// spinners says which GPUs are busy with nothing, which is how a collective
// looks that waits in vain.
func spinners(gpus []GPUActivity) []string {
	var which []string
	low, high := 100, 0
	for _, g := range gpus {
		if g.Util > spinning && g.MemUtil == 0 {
			which = append(which, fmt.Sprint(g.Index))
			low, high = min(low, g.Util), max(high, g.Util)
		}
	}
	share := fmt.Sprintf("%d %%", high)
	if low < high {
		share = fmt.Sprintf("%d to %d %%", low, high)
	}
	switch {
	case len(which) == 0:
		return nil
	case len(which) == len(gpus) && len(gpus) > 1:
		return []string{fmt.Sprintf("all %d GPUs at %s with no memory traffic", len(gpus), share)}
	}
	return []string{fmt.Sprintf("GPU %s at %s with no memory traffic", strings.Join(which, ", "), share)}
}

// causeOfRank explains why a rank vanished, as far as its status tells.
func (m *Machine) causeOfRank() string {
	s := m.run.Gone.Status
	switch {
	case s != nil && s.Signal == 9:
		return "killed_outside"
	case s != nil && s.Signal != 0:
		return "segfault"
	case m.run.ready():
		return "zombie_server"
	}
	return "unknown"
}

// hangCause names what a launch that stands still in a phase hangs in.
func hangCause(p phases.Phase) string {
	switch p {
	case phases.DistributedInit:
		return "nccl_init_hang"
	case phases.LoadingWeights, phases.WeightsLoaded:
		return "load_hang"
	case phases.Autotune:
		return "autotune_hang"
	case phases.GraphCapture:
		return "graph_capture_hang"
	case phases.Warmup:
		return "warmup_no_answer"
	}
	return "unknown"
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
