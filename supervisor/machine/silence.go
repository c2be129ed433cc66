package machine

import (
	"fmt"
	"strings"
	"time"
)

// What is told while the output is silent, long before anything follows from it:
// a person who looks at a terminal at night wants to know whether to wait.

const (
	longSilence = 2 * time.Minute // of the output, before a word about it
	busyPause   = 5 * time.Minute // between two words about one silence
)

// tellBusy says what a silent server is busy with.
func (m *Machine) tellBusy() {
	r := &m.run
	silent := m.now.Sub(later(r.Heard, r.SpawnedAt))
	if r.ready() || silent < longSilence || !m.tell("busy", busyPause) {
		return
	}
	m.say("verdict", fmt.Sprintf("quiet %s in %s but busy: %s%s", round(silent), r.Phase, r.MovedBy, m.burden()),
		"outcome", "", "phase", r.Phase.String(), "quiet", silent.Seconds(), "acted", false)
}

// tellSuspect says that nothing has moved for half of the patience.
func (m *Machine) tellSuspect() {
	r, limit := &m.run, m.opt.limit(m.run.Phase)
	still := m.now.Sub(later(r.Moved, r.PhaseAt))
	if limit.Quiet <= 0 || still < limit.Quiet/2 || !m.opt.SGLang && !r.SGLang || r.Warned["quiet"] || !m.tell("suspect", limit.Quiet) {
		return
	}
	m.say("verdict", fmt.Sprintf("nothing has moved for %s in %s, patience is %s; %s", round(still), r.Phase, limit.Quiet, m.standing()),
		"outcome", "", "phase", r.Phase.String(), "quiet", still.Seconds(), "acted", false)
}

// burden is what slows the server down from outside, as far as it is known;
// it begins with a semicolon or is empty.
func (m *Machine) burden() string {
	var parts []string
	if p := m.run.Reading.Pressure; p != nil {
		for _, source := range []struct {
			name  string
			share float64
		}{{"io", p.IO}, {"memory", p.Memory}, {"cpu", p.CPU}} {
			if source.share >= pressing {
				parts = append(parts, fmt.Sprintf("%s pressure %.0f %%", source.name, source.share))
			}
		}
	}
	if c := m.run.Reading.Cached; c != nil && mapsFiles(m.run.Phase) {
		parts = append(parts, fmt.Sprintf("%.0f %% of the weights in the page cache", 100*(*c)))
	}
	if n := m.run.Memory; !n.Short.IsZero() && m.now.Sub(n.Short) <= stillPressing {
		parts = append(parts, pressed(n.First, n.Newest)...)
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}
