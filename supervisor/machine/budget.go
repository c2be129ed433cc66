package machine

import (
	"fmt"
	"regexp"
	"time"

	"sglaunch/phases"
)

// budget is what keeps a crash loop from burning the night.
type budget struct {
	Spawns     []time.Time // within the window
	Last       string      // fingerprint of the newest cause
	Same       int         // how often in a row
	Furthest   int         // phase, counted from 1; 0 = none yet
	NoProgress int         // attempts in a row that did not get further
	Failures   int         // in a row: the exponent of the backoff
	Waits      int         // of them, in a row: for a resource that comes back
	Since      time.Time   // of the first failure in a row
	WaitSince  time.Time   // of the first wait in a row
	WaitLast   time.Time   // of the newest
	Inherited  time.Time   // newest spawn of an earlier sglaunch that counts here
}

func (b *budget) spawn(at time.Time) { b.Spawns = append(b.Spawns, at) }

// forget drops the past after a healthy stretch.
func (b *budget) forget() { *b = budget{Spawns: b.Spawns[max(len(b.Spawns)-1, 0):]} }

// inherit takes over what a launch that died or gave up has used up.
func (b *budget) inherit(e *Earlier, now time.Time) {
	if e == nil {
		return
	}
	for _, at := range e.Spawns {
		if !at.After(now) {
			b.Spawns, b.Inherited = append(b.Spawns, at.Round(0)), at.Round(0)
		}
	}
	b.Last, b.Same = e.Cause, e.Same
}

// note takes one failed attempt. Waiting for a resource is no crash loop: it
// wears out the window and its own bound, not the patience with one cause.
func (b *budget) note(now time.Time, fingerprint string, reached phases.Phase, waiting bool) {
	b.Failures++
	if b.Since.IsZero() {
		b.Since = now
	}
	if waiting {
		b.WaitLast = now
		if b.Waits++; b.Waits == 1 {
			b.WaitSince = now
		}
		return
	}
	b.Waits = 0
	if fingerprint == b.Last {
		b.Same++
	} else {
		b.Last, b.Same = fingerprint, 1
	}
	if got := int(reached) + 1; got > b.Furthest {
		b.Furthest, b.NoProgress = got, 0
	} else {
		b.NoProgress++
	}
}

// within counts the spawns of the last window and tells when the oldest of
// them leaves it.
func (b *budget) within(now time.Time, window time.Duration) (n int, free time.Time) {
	kept := b.Spawns[:0]
	for _, at := range b.Spawns {
		if window <= 0 || now.Sub(at) < window {
			kept = append(kept, at)
		}
	}
	b.Spawns = kept
	if len(kept) > 0 {
		free = kept[0].Add(window)
	}
	return len(kept), free
}

// usedUp tells of a full window, and how much of it earlier launches filled.
func (b *budget) usedUp(n int, window time.Duration) string {
	text := fmt.Sprintf("%d launches in %s are used up", n, window)
	earlier := 0
	for _, at := range b.Spawns {
		if !at.After(b.Inherited) {
			earlier++
		}
	}
	if earlier > 0 {
		text += fmt.Sprintf(", %d of them by earlier runs of sglaunch", earlier)
	}
	return text
}

// exhausted says which budget is used up; "" = none is.
func (m *Machine) exhausted(waiting bool) string {
	b, o := &m.budget, m.opt
	n, _ := b.within(m.now, o.Window)
	switch {
	case o.Total > 0 && m.now.Sub(b.Since) >= o.Total:
		return fmt.Sprintf("not healthy for %s", round(m.now.Sub(b.Since)))
	case waiting && m.now.Sub(b.WaitSince) >= o.Window:
		return fmt.Sprintf("waited %s in vain", round(m.now.Sub(b.WaitSince)))
	case waiting && o.Window > 0 && o.Attempts > 1:
		return "" // it costs time, which is bounded above; pause makes room in the window
	case n >= o.Attempts && !m.waited():
		return b.usedUp(n, o.Window)
	case m.run.Outcome == OutcomeRefused && b.Failures >= o.Attempts:
		return fmt.Sprintf("refused %d times", b.Failures)
	case o.SameCause > 0 && b.Same >= o.SameCause:
		return fmt.Sprintf("the same cause %d times in a row", b.Same)
	case o.NoProgress > 0 && b.NoProgress >= o.NoProgress:
		return fmt.Sprintf("%d attempts without getting further than %s", b.NoProgress, phases.Phase(b.Furthest-1))
	}
	return ""
}

// waited reports whether a launch of this window only met the absence of a
// resource. A full window is then no crash loop: there is a pause, not an end.
func (m *Machine) waited() bool {
	return m.opt.Attempts > 1 && !m.budget.WaitLast.IsZero() && m.now.Sub(m.budget.WaitLast) < m.opt.Window
}

var particulars = regexp.MustCompile(`0x[0-9a-fA-F]+|\d+(\.\d+)?|/[^\s'"]+`)

// fingerprint identifies a cause over attempts: rank, time, address, line
// number, path and sizes never enter it.
func (m *Machine) fingerprint() string {
	switch m.run.Cause {
	case "", "unknown", "scheduler_exception":
		text := particulars.ReplaceAllString(m.run.Diagnosis.Text, "#")
		return fmt.Sprintf("%s|%s|%s|%s", m.run.Outcome, m.run.Cause, m.run.Phase, text)
	}
	return m.run.Cause
}
