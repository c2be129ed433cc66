package shim

import (
	"slices"
	"time"

	"sglaunch/internal/shim/wire"
)

const (
	deathsKept = 5                // so many deaths of the supervisor
	deathsIn   = 30 * time.Second // within this time, without progress, and it is left dead
	skipsKept  = 256
	askedKept  = 16
)

// facts are what no death of the supervisor may lose. The Hello of the next one
// is made of them.
type facts struct {
	wire.Hello
	// reading is the stretch that the supervisor interprets right now.
	reading *wire.Range
	// read is the offset up to which the newest attempt was ever interpreted.
	read int64
	// deaths of the supervisor since it last got on with its work.
	deaths []time.Time
}

// begin opens an attempt: what was known of the one before is over.
func (f *facts) begin(attempt int) {
	f.Attempt, f.Server, f.Exited = attempt, nil, nil
	f.TreeGone, f.Drained, f.Granted, f.Output = false, false, false, 0
	f.Suspect, f.Skip, f.reading, f.read = nil, nil, nil, 0
	f.deaths = nil
}

// asked remembers a wish to end.
func (f *facts) asked(sig int) {
	if len(f.Asked) < askedKept {
		f.Asked = append(f.Asked, sig)
	}
}

// startReading notes a stretch about to be interpreted, doneReading that all
// before an offset was survived.
func (f *facts) startReading(r wire.Range) {
	if r.Attempt == f.Attempt && r.From < r.To {
		f.reading = &r
	}
}

func (f *facts) doneReading(attempt int, to int64) {
	if attempt != f.Attempt {
		return
	}
	if f.reading != nil && f.reading.To <= to {
		f.reading = nil
	}
	if f.Suspect != nil && f.Suspect.To <= to {
		f.Suspect = nil
	}
	if to > f.read {
		f.read, f.deaths = to, nil
	}
}

// supervisorDied draws the conclusions from a death. What it was interpreting is
// suspect; if that lay in a stretch already suspect, it has killed twice and is
// to be skipped. The supervisor goes through a suspect stretch line by line, so
// what is skipped is one line.
func (f *facts) supervisorDied(at time.Time) (wait time.Duration, givenUp bool) {
	f.Restarts++
	if r := f.reading; r != nil {
		f.reading = nil
		if twice := overlap(f.Suspect, r); twice != nil && len(f.Skip) < skipsKept {
			f.Skip = append(f.Skip, *twice)
			f.deaths = nil // one line further is progress
		} else {
			f.Suspect = r
		}
	}
	f.deaths = append(slices.DeleteFunc(f.deaths, func(t time.Time) bool { return at.Sub(t) > deathsIn }), at)
	if len(f.deaths) >= deathsKept {
		return 0, true
	}
	return time.Duration(len(f.deaths)-1) * 200 * time.Millisecond, false
}

// overlap is what two stretches share; nil: nothing.
func overlap(a, b *wire.Range) *wire.Range {
	if a == nil || b == nil {
		return nil
	}
	r := wire.Range{Attempt: b.Attempt, From: max(a.From, b.From), To: min(a.To, b.To)}
	if r.From >= r.To {
		return nil
	}
	return &r
}

// snapshot is a Hello that nobody changes any more.
func (f *facts) snapshot() wire.Hello {
	h := f.Hello
	h.Asked, h.Skip = slices.Clone(h.Asked), slices.Clone(h.Skip)
	return h
}
