package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"sglaunch/phases"
)

// KilledReason is the reason of a launch whose sglaunch died before it could write
// down how that ended; somebody else did so later.
const KilledReason = "sglaunch was killed"

// Launch is one run of sglaunch.
type Launch struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Host     string    `json:"host,omitempty"`
	Command  []string  `json:"command,omitempty"` // masked
	Key      Key       `json:"key"`               // as asked for; its caches are unknown
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Code     *int      `json:"code,omitempty"` // exit code; nil until ended
	Reason   string    `json:"reason,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"` // read, never written
	Killed   bool      `json:"killed,omitempty"`   // sglaunch died and has left it so; for who shows it to tell, never kept
}

// Attempt is one start of the server within a launch.
type Attempt struct {
	N           int       `json:"n"`   // from 1
	Key         Key       `json:"key"` // as it ran
	Began       time.Time `json:"began,omitzero"`
	Ready       time.Time `json:"ready,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`
	Outcome     string    `json:"outcome,omitempty"` // of the vocabulary
	Cause       string    `json:"cause,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"` // of the cause: no rank, time, address
	Phase       string    `json:"phase,omitempty"`       // in which it ended, or is
	Rank        string    `json:"rank,omitempty"`        // where the cause was
	Text        string    `json:"text,omitempty"`        // the words that state it, masked
	Patches     []Patch   `json:"patches,omitempty"`
	Changes     []Change  `json:"changes,omitempty"` // not empty: it ran degraded
	Phases      []Span    `json:"phases,omitempty"`  // read; written by RecordPhases
	Numbers     []Number  `json:"numbers,omitempty"` // read; written by RecordNumbers
}

// Patch is what is known of a patch in an attempt.
type Patch struct {
	Name   string `json:"name"`
	State  string `json:"state,omitempty"`          // before: pristine, applied, drifted, ...
	Effect string `json:"effect,omitempty"`         // effective, partial, ineffective, ...
	Output string `json:"output_checked,omitempty"` // passed, partial, corrupt, innocent
}

// Change is a rung: one thing in which an attempt ran otherwise than asked.
type Change struct {
	Rung string `json:"rung"`
	Text string `json:"text,omitempty"` // what was changed, for a person
}

// Span is one phase of one rank.
type Span struct {
	Rank     string        // "" = the launch as a whole: its slowest rank
	Phase    phases.Phase  //
	Began    time.Time     //
	Took     time.Duration // by a clock that does not jump
	Complete bool          // a later phase followed; only these teach
	Quiet    time.Duration // longest stretch in which nothing moved
	Done     int64         // of the counter, where the phase has one
	Total    int64
	Unit     string
}

// Number is one figure that a rank printed.
type Number struct {
	Rank  string  `json:"rank,omitempty"`
	Name  string  `json:"name"` // kv_tokens, avail_mem_gb, weights_gb, ...
	Value float64 `json:"value"`
}

// RecordLaunch records what is known of a launch.
func (db *DB) RecordLaunch(ctx context.Context, l Launch) error {
	command := ""
	if l.Command != nil {
		data, err := json.Marshal(l.Command)
		if err != nil {
			return fmt.Errorf("cannot record launch %q: %w", l.ID, err)
		}
		command = string(data)
	}
	return db.write(ctx, "record launch "+l.ID, func(ctx context.Context, c *sql.Conn) error {
		if err := ensureLaunch(ctx, c, l.ID); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, `UPDATE launches SET
			name = coalesce(nullif(?, ''), name), host = coalesce(nullif(?, ''), host),
			command = coalesce(nullif(?, ''), command), machine = coalesce(nullif(?, ''), machine),
			model = coalesce(nullif(?, ''), model), flags = coalesce(nullif(?, ''), flags),
			version = coalesce(nullif(?, ''), version), patches = coalesce(nullif(?, ''), patches),
			began = coalesce(nullif(?, 0), began), ended = coalesce(nullif(?, 0), ended),
			code = coalesce(?, code), reason = coalesce(nullif(?, ''), reason)
			WHERE id = ?`,
			l.Name, l.Host, command, l.Key.Machine, l.Key.Model, l.Key.Flags, l.Key.Version, l.Key.Patches,
			millis(l.Began), millis(l.Ended), l.Code, l.Reason, l.ID)
		return err
	})
}

// RecordAttempt records what is known of an attempt. Its patches are added to
// those on disk; its changes, where there are any, replace them.
func (db *DB) RecordAttempt(ctx context.Context, launch string, a Attempt) error {
	return db.onAttempt(ctx, launch, a.N, func(ctx context.Context, c *sql.Conn) error {
		k := a.Key
		_, err := c.ExecContext(ctx, `UPDATE attempts SET
			machine = coalesce(nullif(?, ''), machine), model = coalesce(nullif(?, ''), model),
			flags = coalesce(nullif(?, ''), flags), version = coalesce(nullif(?, ''), version),
			patches = coalesce(nullif(?, ''), patches),
			pages = coalesce(nullif(?, ''), pages), jit = coalesce(nullif(?, ''), jit),
			began = coalesce(nullif(?, 0), began), ready = coalesce(nullif(?, 0), ready),
			ended = coalesce(nullif(?, 0), ended), outcome = coalesce(nullif(?, ''), outcome),
			cause = coalesce(nullif(?, ''), cause), fingerprint = coalesce(nullif(?, ''), fingerprint),
			phase = coalesce(nullif(?, ''), phase), rank = coalesce(nullif(?, ''), rank),
			text = coalesce(nullif(?, ''), text)
			WHERE launch = ? AND n = ?`,
			k.Machine, k.Model, k.Flags, k.Version, k.Patches, string(k.Caches.Pages), string(k.Caches.JIT),
			millis(a.Began), millis(a.Ready), millis(a.Ended), a.Outcome, a.Cause, a.Fingerprint,
			a.Phase, a.Rank, a.Text, launch, a.N)
		if err != nil {
			return err
		}
		if err := recordPatches(ctx, c, launch, a.N, a.Patches); err != nil {
			return err
		}
		return recordChanges(ctx, c, launch, a.N, a.Changes)
	})
}

func recordPatches(ctx context.Context, c *sql.Conn, launch string, n int, patches []Patch) error {
	for _, p := range patches {
		_, err := c.ExecContext(ctx, `INSERT INTO patches (launch, attempt, name, state, effect, output) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET
			state = coalesce(nullif(excluded.state, ''), state), effect = coalesce(nullif(excluded.effect, ''), effect),
			output = coalesce(nullif(excluded.output, ''), output)`,
			launch, n, p.Name, p.State, p.Effect, p.Output)
		if err != nil {
			return err
		}
	}
	return nil
}

func recordChanges(ctx context.Context, c *sql.Conn, launch string, n int, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM changes WHERE launch = ? AND attempt = ?", launch, n); err != nil {
		return err
	}
	for i, r := range changes {
		_, err := c.ExecContext(ctx, "INSERT INTO changes (launch, attempt, place, rung, text) VALUES (?, ?, ?, ?, ?)",
			launch, n, i, r.Rung, r.Text)
		if err != nil {
			return err
		}
	}
	return nil
}

// RecordPhases records phases of an attempt; the newest word on a phase of a
// rank counts.
func (db *DB) RecordPhases(ctx context.Context, launch string, attempt int, spans ...Span) error {
	return db.onAttempt(ctx, launch, attempt, func(ctx context.Context, c *sql.Conn) error {
		for _, s := range spans {
			_, err := c.ExecContext(ctx, `INSERT OR REPLACE INTO phases
				(launch, attempt, rank, phase, began, took, complete, quiet, done, total, unit)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				launch, attempt, s.Rank, s.Phase.String(), millis(s.Began), max(s.Took, 0).Milliseconds(), s.Complete,
				max(s.Quiet, 0).Milliseconds(), s.Done, s.Total, s.Unit)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// RecordNumbers records figures of an attempt; the newest word on a name
// counts. What is not a number is left out.
func (db *DB) RecordNumbers(ctx context.Context, launch string, attempt int, numbers ...Number) error {
	return db.onAttempt(ctx, launch, attempt, func(ctx context.Context, c *sql.Conn) error {
		for _, n := range numbers {
			if math.IsNaN(n.Value) || math.IsInf(n.Value, 0) {
				continue
			}
			_, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO numbers (launch, attempt, rank, name, value) VALUES (?, ?, ?, ?, ?)",
				launch, attempt, n.Rank, n.Name, n.Value)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// onAttempt writes to an attempt that may not have been recorded yet: the
// write before may have met a full disk.
func (db *DB) onAttempt(ctx context.Context, launch string, n int, work func(context.Context, *sql.Conn) error) error {
	what := fmt.Sprintf("record attempt %d of launch %s", n, launch)
	if n < 1 {
		return fmt.Errorf("cannot %s: attempts count from 1", what)
	}
	return db.write(ctx, what, func(ctx context.Context, c *sql.Conn) error {
		if err := ensureLaunch(ctx, c, launch); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, "INSERT OR IGNORE INTO attempts (launch, n) VALUES (?, ?)", launch, n); err != nil {
			return err
		}
		return work(ctx, c)
	})
}

// errNoID refuses what belongs to no launch.
var errNoID = errors.New("it names no launch")

func ensureLaunch(ctx context.Context, c *sql.Conn, id string) error {
	if id == "" {
		return errNoID
	}
	_, err := c.ExecContext(ctx, "INSERT OR IGNORE INTO launches (id) VALUES (?)", id)
	return err
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
