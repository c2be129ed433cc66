package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"sglaunch/supervisor/machine"
)

// Difference is a step in which today's code decides otherwise than the code
// that wrote the journal.
type Difference struct {
	Event     machine.Event
	Was, Now  []machine.Effect
	Condition string // why the two cannot be compared, where that is so
}

// Replay gives every event of a journal to a fresh machine and calls each with
// what was decided then and now. It returns the differences. From a gap on, the
// machine of then knew what this one does not: gaps are told, decisions are not
// compared any more.
func Replay(r io.Reader, each func(Entry, machine.State)) (differences []Difference, torn int, err error) {
	header, entries, torn, err := Read(r)
	if err != nil {
		return nil, torn, err
	}
	m, err := header.Machine()
	if err != nil {
		return nil, torn, err
	}
	next := uint64(1)
	if len(header.Snapshot) > 0 && len(entries) > 0 {
		next = entries[0].Event.Seq // the older journal ends before it
	}
	whole := true
	for _, e := range entries {
		now := m.Step(e.Event)
		gap := e.gap(next)
		next = e.Event.Seq + 1
		whole = whole && gap == ""
		switch {
		case gap != "":
			differences = append(differences, Difference{Event: e.Event, Condition: gap})
		case whole && !sameEffects(e.Effects, now):
			differences = append(differences, Difference{Event: e.Event, Was: e.Effects, Now: now})
		}
		if each != nil {
			each(Entry{Event: e.Event, Effects: now}, m.State())
		}
	}
	return differences, torn, nil
}

// gap tells what is missing before an entry, whose event should be the next; ""
// where nothing is.
func (e Entry) gap(next uint64) string {
	switch {
	case e.Lost > 0:
		return fmt.Sprintf("%d entries before this one were lost to a slow disk; from here on decisions are not compared", e.Lost)
	case e.Event.Seq > next:
		return fmt.Sprintf("the journal has a gap: %d entries before this one are missing; from here on decisions are not compared", e.Event.Seq-next)
	}
	return ""
}

// sameEffects compares by what the journal would hold once it was read again: what
// was a struct when it was decided is a table then, in another order.
func sameEffects(a, b []machine.Effect) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	x, errX := asRead(a)
	y, errY := asRead(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func asRead(effects []machine.Effect) (content any, err error) {
	text, err := json.Marshal(effects)
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	return content, err
}

// Fold brings a machine to where the entries of a journal left it and counts
// the observations of each attempt, on top of those of older journals.
func Fold(m *machine.Machine, before Seen, entries []Entry) (seen Seen, last uint64) {
	seen = before.Clone()
	for _, e := range entries {
		m.Step(e.Event)
		seen.Add(e.Event)
		last = e.Event.Seq
	}
	return seen, last
}
