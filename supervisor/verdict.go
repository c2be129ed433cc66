package supervisor

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"sglaunch/phases"
)

// Slow or stuck. Silence proves nothing; progress is whatever moved that the
// phase expects to move. Each source alone may be blind, so any one suffices.

// Below these, a difference between two readings is noise.
const (
	movedBytes  = 1 << 20  // read from storage
	movedMemory = 64 << 20 // of GPU memory, up or down
	movedFaults = 1000     // page faults a second: a warm page cache reads nothing
	movedCPU    = 0.05     // cores used while a compiler is at work
)

// activity compares a reading with the one before.
func (m *Machine) activity(a Activity) {
	if m.state != StateStarting && m.state != StateUp {
		return
	}
	before, seconds := m.run.seen, m.now.Sub(m.run.seenAt).Seconds()
	first := m.run.seenAt.IsZero()
	m.run.seen, m.run.seenAt = a, m.now
	if first || seconds <= 0 {
		return
	}
	if what := moving(m.run.phase, before, a, seconds); what != "" {
		// The sources speak for the tree as a whole: they prove life, but
		// not that a fatal line was harmless.
		m.run.moved, m.run.movedBy = m.now, what
	}
}

// moving names what moved between two readings of the same attempt, taken
// seconds apart; "" = nothing did.
func moving(p phases.Phase, a, b Activity, seconds float64) string {
	if grown(a.ReadBytes, b.ReadBytes) >= movedBytes {
		return "reading from storage"
	}
	if len(b.Compilers) > 0 && (b.CPU-a.CPU)/seconds > movedCPU {
		return "compiling (" + strings.Join(b.Compilers, ", ") + ")"
	}
	if b.Downloads {
		return "downloading"
	}
	if mapsFiles(p) && float64(grown(a.Faults, b.Faults))/seconds >= movedFaults {
		return "mapping files from the page cache"
	}
	for i, g := range b.GPUs {
		if g.MemUtil > 0 {
			return fmt.Sprintf("GPU %d moves memory", g.Index)
		}
		if i < len(a.GPUs) && a.GPUs[i].Index == g.Index && g.Used >= 0 && a.GPUs[i].Used >= 0 &&
			abs(g.Used-a.GPUs[i].Used) >= movedMemory {
			return fmt.Sprintf("memory of GPU %d changes", g.Index)
		}
	}
	return ""
}

// mapsFiles reports whether page faults are work in this phase: imports and
// weights are read through them. Later they are only the heap's noise.
func mapsFiles(p phases.Phase) bool {
	return p == phases.Starting || p == phases.LoadingWeights || p == phases.WeightsLoaded
}

// nextLimit is the earliest moment at which something must be decided.
func (m *Machine) nextLimit() time.Time {
	var next time.Time
	earliest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	r := &m.run
	if r.spawning {
		earliest(r.phaseAt.Add(checkLimit + answerMargin))
		return next
	}
	if r.fatal != nil {
		earliest(r.fatalAt.Add(fatalGrace))
	}
	if r.gone != nil {
		earliest(r.goneAt.Add(rankGrace))
	}
	if r.ready() {
		if !r.healthy {
			earliest(r.readyAt.Add(m.opt.HealthyAfter))
		}
		return next
	}
	if r.warned {
		return next // observing: told once a phase
	}
	limit := m.opt.Limits[r.phase]
	if limit.Quiet > 0 {
		earliest(later(r.moved, r.phaseAt).Add(limit.Quiet))
	}
	if limit.Timeout > 0 {
		earliest(r.phaseAt.Add(limit.Timeout))
	}
	if m.opt.ReadyTimeout > 0 {
		earliest(r.spawnedAt.Add(m.opt.ReadyTimeout))
	}
	return next
}

// limitPassed finds which limit has passed and acts on it.
func (m *Machine) limitPassed() {
	r := &m.run
	past := func(t time.Time) bool { return !m.now.Before(t) }
	limit := m.opt.Limits[r.phase]
	switch {
	case r.spawning:
		m.run.spawning = false
		m.fail(OutcomeTimedOut, "host_stall", "the server could not be spawned in time")
	case r.fatal != nil && past(r.fatalAt.Add(fatalGrace)):
		m.actOn(OutcomeCrashed, r.fatal.Cause,
			fmt.Sprintf("SGLang reported a fatal fault %s ago and did not end: %s", round(m.now.Sub(r.fatalAt)), r.fatal.Text))
		r.fatal = nil
	case r.gone != nil && past(r.goneAt.Add(rankGrace)):
		m.actOn(OutcomeCrashed, m.causeOfRank(), fmt.Sprintf("%s is gone%s, and the server lives on without it", r.gone.Rank, how(r.gone.Status)))
		r.gone = nil
	case r.ready():
		if !r.healthy && past(r.readyAt.Add(m.opt.HealthyAfter)) {
			r.healthy = true
			m.budget.healthy()
			m.say("decision", "", "reason", "healthy for "+m.opt.HealthyAfter.String()+": budgets start anew")
		}
	case limit.Quiet > 0 && past(later(r.moved, r.phaseAt).Add(limit.Quiet)):
		m.actOn(OutcomeHung, hangCause(r.phase), m.quietText(limit.Quiet))
	case limit.Timeout > 0 && past(r.phaseAt.Add(limit.Timeout)):
		m.actOn(OutcomeTimedOut, hangCause(r.phase), fmt.Sprintf("%s for %s, over its limit of %s, though %s", r.phase,
			round(m.now.Sub(r.phaseAt)), limit.Timeout, or(r.movedBy, "nothing moved")))
	case m.opt.ReadyTimeout > 0 && past(r.spawnedAt.Add(m.opt.ReadyTimeout)):
		m.actOn(OutcomeTimedOut, hangCause(r.phase), fmt.Sprintf("not ready after %s; in %s for %s",
			m.opt.ReadyTimeout, r.phase, round(m.now.Sub(r.phaseAt))))
	}
}

// actOn does what `act` allows: while starting sglaunch kills unless it only
// observes; after ready these verdicts rest on process evidence alone.
func (m *Machine) actOn(o Outcome, cause, why string) {
	if m.opt.Act == "observe" {
		m.run.warned = true
		m.say("verdict", "would have ended the attempt: "+why, "outcome", string(o), "cause", cause, "acted", false)
		return
	}
	m.fail(o, cause, why)
}

// causeOfRank explains why a rank vanished, as far as its status tells.
func (m *Machine) causeOfRank() string {
	s := m.run.gone.Status
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

// quietText is the verdict with its evidence, in words and numbers.
func (m *Machine) quietText(limit time.Duration) string {
	r := &m.run
	quiet := m.now.Sub(later(r.moved, r.phaseAt))
	parts := []string{fmt.Sprintf("quiet %s in %s (patience %s)", round(quiet), r.phase, limit)}
	a := r.seen
	if r.seenAt.IsZero() {
		return parts[0] + "; processes and GPUs could not be read"
	}
	for _, g := range a.GPUs {
		if g.Util > 50 && g.MemUtil == 0 {
			parts = append(parts, fmt.Sprintf("GPU %d %d %% with no memory traffic", g.Index, g.Util))
		}
	}
	if len(a.Compilers) == 0 {
		parts = append(parts, "no compiler")
	} else {
		parts = append(parts, "compilers without CPU: "+strings.Join(a.Compilers, ", "))
	}
	if len(a.Blocked) > 0 {
		parts = append(parts, "in uninterruptible sleep: "+strings.Join(a.Blocked, ", "))
	}
	if len(a.Missing) > 0 {
		missing := append([]string(nil), a.Missing...)
		sort.Strings(missing)
		parts = append(parts, "not known: "+strings.Join(missing, ", "))
	}
	return strings.Join(parts, "; ")
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
	case phases.Ready, phases.Serving:
		return "serving_hang"
	}
	return "unknown"
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func grown(a, b uint64) uint64 {
	if b < a {
		return 0 // a member ended and took its counters along
	}
	return b - a
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
