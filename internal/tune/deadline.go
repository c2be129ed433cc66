package tune

import (
	"fmt"
	"time"
	_ "time/tzdata" // slim containers have no zones of their own
)

// Deadline is when a server has to serve: on the clock ("06:30") or after a
// time ("8h"). The zero value is none, which no study may have.
type Deadline struct {
	In   time.Duration // > 0: after this time
	Hour int           // else at this time of the day
	Min  int
	Set  bool // on the clock
}

// UnmarshalText reads "06:30" or "8h".
func (d *Deadline) UnmarshalText(text []byte) error {
	if at, err := time.Parse("15:04", string(text)); err == nil {
		*d = Deadline{Hour: at.Hour(), Min: at.Minute(), Set: true}
		return nil
	}
	in, err := time.ParseDuration(string(text))
	if err != nil || in <= 0 {
		return fmt.Errorf("cannot use %q as a deadline: it takes a time of the day, as in \"06:30\", or a duration, as in \"8h\"", text)
	}
	*d = Deadline{In: in}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Deadline) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Deadline) String() string {
	if d.Set {
		return fmt.Sprintf("%02d:%02d", d.Hour, d.Min)
	}
	return d.In.String()
}

// IsZero reports whether no deadline is set.
func (d Deadline) IsZero() bool { return !d.Set && d.In <= 0 }

// After is the first such moment after began, on the clock of zone. A time
// that the clock skips in spring is taken an hour later by that clock; one that
// it shows twice in autumn is taken the first time that is still to come.
func (d Deadline) After(began time.Time, zone *time.Location) time.Time {
	if !d.Set {
		return began.Add(d.In)
	}
	local := began.In(zone)
	for day := 0; ; day++ {
		at := time.Date(local.Year(), local.Month(), local.Day()+day, d.Hour, d.Min, 0, 0, zone)
		for _, twice := range []time.Time{at.Add(-time.Hour), at, at.Add(time.Hour)} {
			if twice.Hour() == at.Hour() && twice.Minute() == at.Minute() && twice.After(began) {
				return twice
			}
		}
	}
}
