package history

import (
	"context"
	"database/sql"
	"time"

	"sglaunch/phases"
)

const (
	enough   = 3  // starts from which history speaks
	newest   = 20 // starts that count: a box changes
	pastSize = 60 // starts that are read, of all temperatures and versions
)

// Past is what is known of a Key at one moment. Its methods read nothing more,
// so they cannot fail, wait or disagree. The zero Past knows nothing.
type Past struct {
	key    Key
	starts []start // newest first
}

// start is one attempt that may teach something.
type start struct {
	key   Key
	ready bool
	spans map[phases.Phase]Span // of the launch as a whole, complete ones
}

// Past reads what is known of a key: starts with the same machine, model and
// flags.
func (db *DB) Past(ctx context.Context, key Key) (Past, error) {
	return read(ctx, db, "read what earlier starts took", func(ctx context.Context, c *sql.Conn) (Past, error) {
		p := Past{key: key}
		type found struct {
			launch string
			Attempt
		}
		attempts, err := collect(ctx, c, func(rows *sql.Rows) (f found, err error) {
			return f, scanAttemptInto(rows, &f.Attempt, &f.launch)
		}, "SELECT "+attemptColumns+`, launch FROM attempts WHERE machine = ? AND model = ? AND flags = ?
			ORDER BY launch DESC, n DESC LIMIT ?`, key.Machine, key.Model, key.Flags, pastSize)
		if err != nil {
			return p, err
		}
		for _, a := range attempts {
			spans, err := collect(ctx, c, scanSpan, "SELECT "+spanColumns+` FROM phases
				WHERE launch = ? AND attempt = ? AND rank = '' AND complete`, a.launch, a.N)
			if err != nil {
				return p, err
			}
			p.add(a.Attempt, spans)
		}
		return p, nil
	})
}

// At is the same past as seen from another key of the same server: one with
// other patches, caches or version.
func (p Past) At(key Key) Past {
	p.key = key
	return p
}

func (p *Past) add(a Attempt, spans []Span) {
	s := start{key: a.Key, ready: !a.Ready.IsZero(), spans: map[phases.Phase]Span{}}
	for _, span := range spans {
		s.spans[span.Phase] = span
	}
	p.starts = append(p.starts, s)
}

// warmth is what decides how long a phase takes: the checkpoint's pages while
// it is read, compiled kernels after that.
func warmth(c Caches, phase phases.Phase) Warmth {
	if phase <= phases.WeightsLoaded {
		return c.Pages
	}
	return c.JIT
}

// comparable picks values of starts like ours: of the same version where there
// are enough of them, else of any. like compares the caches.
func (p Past) comparable(like func(Caches) bool, value func(start) (time.Duration, bool)) (values []float64, basis string) {
	pick := func(anyVersion bool) (values []float64) {
		for _, s := range p.starts {
			if len(values) == newest {
				break
			}
			same := s.key.Version == p.key.Version || anyVersion
			if !same || s.key.Patches != p.key.Patches || !like(s.key.Caches) {
				continue
			}
			if v, ok := value(s); ok {
				values = append(values, v.Seconds())
			}
		}
		return values
	}
	if values = pick(false); len(values) >= enough {
		return values, ""
	}
	if values = pick(true); len(values) >= enough {
		return values, "by other versions of SGLang"
	}
	return nil, ""
}

// took are the times that a phase took, newest first.
func (p Past) took(phase phases.Phase) (seconds []float64, basis string) {
	ours := warmth(p.key.Caches, phase)
	return p.comparable(
		func(c Caches) bool { return warmth(c, phase) == ours },
		func(s start) (time.Duration, bool) {
			span, ok := s.spans[phase]
			return span.Took, ok
		})
}

// rest are the times from the end of a phase until ready, of starts that got
// there.
func (p Past) rest(phase phases.Phase) (seconds []float64, basis string) {
	return p.comparable(
		func(c Caches) bool { return c == p.key.Caches },
		func(s start) (time.Duration, bool) {
			if _, ok := s.spans[phase]; !ok || !s.ready {
				return 0, false
			}
			return s.between(phase+1, phases.Ready), true
		})
}

// between adds up the phases from one up to another, which is not counted.
func (s start) between(from, to phases.Phase) (sum time.Duration) {
	for phase := from; phase < to; phase++ {
		sum += s.spans[phase].Took
	}
	return sum
}

// Starts tells how many starts are known, of whatever temperature.
func (p Past) Starts() int { return len(p.starts) }
