package supervisor

import (
	"fmt"
	"maps"
	"time"

	"sglaunch/internal/history"
	"sglaunch/internal/serve"
	"sglaunch/phases"
	"sglaunch/supervisor/machine"
)

// addTo adds to what is told what only the past knows: how long the phase and
// the whole start still take, and that a phase was slower than usual. Where the
// past says nothing the report stays as it is.
func (m *memory) addTo(r machine.Report, at time.Time) machine.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Event {
	case "progress":
		if r.Fields["activity"] == "output_check" {
			return m.addCost(r)
		}
		return m.addLeft(r, at)
	case "phase":
		return m.addReady(m.addDrift(r))
	}
	return r
}

// addLeft: "weights 41 of 83, about 6 min left, usually 14 to 17 min here".
func (m *memory) addLeft(r machine.Report, at time.Time) machine.Report {
	done, _ := r.Fields["done"].(int64)
	total, _ := r.Fields["total"].(int64)
	// A rank that is ahead of the others says nothing about the launch's phase.
	if phase, _ := r.Fields["phase"].(string); r.Text == "" || done >= total || phase != m.story.phase.String() {
		return r
	}
	e, ok := m.past.Estimate(m.story.phase, history.Progress{Done: done, Total: total}, at.Sub(m.story.since))
	if !ok || e.Trivial() {
		return r
	}
	return adding(r, ", "+e.String(), "left", e)
}

// addDrift: "loading_weights was 2.3 x slower than the last 10 on this disk".
func (m *memory) addDrift(r machine.Report) machine.Report {
	before, _ := r.Fields["before"].(string)
	p, err := phases.ParsePhase(before)
	if err != nil {
		return r
	}
	d, ok := m.past.Drift(p, secondsOf(r.Fields, "seconds"))
	if !ok {
		return r
	}
	r.Text += fmt.Sprintf("; %s was %s", before, d)
	r.Fields = maps.Clone(r.Fields) // the journal holds the same map
	r.Fields["drift"] = d.Factor
	return r
}

// addReady: "ready in about 9 min, a start usually takes 14 to 17 min here".
func (m *memory) addReady(r machine.Report) machine.Report {
	next, _ := r.Fields["phase"].(string)
	p, err := phases.ParsePhase(next)
	if err != nil {
		return r
	}
	e, ok := m.past.Ready(p, history.Progress{}, 0)
	if !ok || e.Trivial() {
		return r
	}
	return adding(r, "; "+e.UntilReady(), "ready_in", e)
}

// adding adds an estimate in words and, in seconds, for scripts.
func adding(r machine.Report, text, name string, e history.Estimate) machine.Report {
	r.Text += text
	r.Fields = maps.Clone(r.Fields) // the journal holds the same map
	if !e.Overdue {
		r.Fields[name], r.Fields[name+"_low"], r.Fields[name+"_high"] = e.Left.Seconds(), e.Low.Seconds(), e.High.Seconds()
	}
	return r
}

// left is how long it should still take until the server is ready; nil where
// that is unknown.
func (m *memory) left(phase phases.Phase, since time.Time, done, total int64) *serve.Left {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.past.Ready(phase, history.Progress{Done: done, Total: total}, time.Since(since))
	if !ok {
		return nil
	}
	return &serve.Left{Seconds: e.Left.Seconds(), Low: e.Low.Seconds(), High: e.High.Seconds(), Overdue: e.Overdue}
}
