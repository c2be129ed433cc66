package supervisor

import (
	"context"
	"slices"

	"sglaunch/internal/history"
	"sglaunch/supervisor/journal"
	"sglaunch/supervisor/machine"
)

// resume takes up the current attempt from the journal of the supervisor
// before. What that one had recorded is recorded again, which changes nothing;
// what it had not, is not lost.
func (m *memory) resume(entries []journal.Entry) {
	began := func(e journal.Entry) bool {
		return slices.ContainsFunc(e.Effects, func(e machine.Effect) bool {
			r, ok := e.Body.(machine.Report)
			return ok && r.Event == "attempt_started"
		})
	}
	for i, e := range slices.Backward(entries) {
		if began(e) {
			m.relive(entries[i:])
			m.reopen()
			return
		}
	}
}

// relive hears once more what the journal holds of an attempt.
func (m *memory) relive(entries []journal.Entry) {
	for _, entry := range entries {
		e := entry.Event
		if s, ok := e.Body.(machine.Seen); ok {
			m.seen(e.Attempt, s.Observation, e.At)
		}
		for _, effect := range entry.Effects {
			if r, ok := effect.Body.(machine.Report); ok {
				m.told(envelope{Time: e.At, Attempt: effect.Attempt, Event: r.Event, Text: r.Text, Fields: r.Fields})
			}
		}
	}
}

// reopen finds what the supervisor before had measured of the attempt.
func (m *memory) reopen() {
	if m.db == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryLimit)
	defer cancel()
	l, err := m.db.Launch(ctx, m.launch)
	if err != nil {
		return // it had recorded nothing either
	}
	m.mu.Lock()
	i := slices.IndexFunc(l.Attempts, func(a history.Attempt) bool { return a.N == m.story.n })
	if i >= 0 {
		m.story.key = l.Attempts[i].Key
	}
	key := m.story.key
	m.mu.Unlock()
	m.recall(ctx, key)
}
