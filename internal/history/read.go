package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sglaunch/phases"
)

// ErrUnknownLaunch says that no launch of that ID is recorded.
var ErrUnknownLaunch = errors.New("no such launch")

// Launches reads the newest launches of a name, newest first, with all that
// is known of their attempts. An empty name stands for all.
func (db *DB) Launches(ctx context.Context, name string, limit int) ([]Launch, error) {
	return read(ctx, db, "read launches", func(ctx context.Context, c *sql.Conn) ([]Launch, error) {
		return loadLaunches(ctx, c, "WHERE ? IN ('', name) ORDER BY id DESC LIMIT ?", name, limit)
	})
}

// Launch reads one launch. An ID that does not exist gives ErrUnknownLaunch.
func (db *DB) Launch(ctx context.Context, id string) (Launch, error) {
	return read(ctx, db, fmt.Sprintf("read launch %q", id), func(ctx context.Context, c *sql.Conn) (Launch, error) {
		found, err := loadLaunches(ctx, c, "WHERE id = ?", id)
		if err != nil {
			return Launch{}, err
		}
		if len(found) == 0 {
			return Launch{}, ErrUnknownLaunch
		}
		return found[0], nil
	})
}

func loadLaunches(ctx context.Context, c *sql.Conn, where string, args ...any) ([]Launch, error) {
	launches, err := collect(ctx, c, scanLaunch, "SELECT "+launchColumns+" FROM launches "+where, args...)
	if err != nil {
		return nil, err
	}
	for i := range launches {
		if launches[i].Attempts, err = loadAttempts(ctx, c, launches[i].ID); err != nil {
			return nil, err
		}
	}
	return launches, nil
}

// launchColumns are those that scanLaunch reads.
const launchColumns = "id, name, host, command, machine, model, flags, version, patches, began, ended, code, reason"

func scanLaunch(rows *sql.Rows) (Launch, error) {
	var (
		l            Launch
		command      string
		began, ended int64
		k            = &l.Key
	)
	err := rows.Scan(&l.ID, &l.Name, &l.Host, &command, &k.Machine, &k.Model, &k.Flags, &k.Version, &k.Patches,
		&began, &ended, &l.Code, &l.Reason)
	if err != nil {
		return l, err
	}
	l.Began, l.Ended = fromMillis(began), fromMillis(ended)
	return l, json.Unmarshal([]byte(command), &l.Command)
}

// attemptColumns are those that scanAttempt reads.
const attemptColumns = `n, machine, model, flags, version, patches, pages, jit, began, ready, ended,
	outcome, cause, fingerprint, phase, rank, text`

func scanAttempt(rows *sql.Rows) (Attempt, error) {
	var a Attempt
	return a, scanAttemptInto(rows, &a)
}

func scanAttemptInto(rows *sql.Rows, a *Attempt, more ...any) error {
	var began, ready, ended int64
	k := &a.Key
	err := rows.Scan(append([]any{&a.N, &k.Machine, &k.Model, &k.Flags, &k.Version, &k.Patches, &k.Caches.Pages, &k.Caches.JIT,
		&began, &ready, &ended, &a.Outcome, &a.Cause, &a.Fingerprint, &a.Phase, &a.Rank, &a.Text}, more...)...)
	a.Began, a.Ready, a.Ended = fromMillis(began), fromMillis(ready), fromMillis(ended)
	return err
}

func loadAttempts(ctx context.Context, c *sql.Conn, launch string) ([]Attempt, error) {
	attempts, err := collect(ctx, c, scanAttempt, "SELECT "+attemptColumns+" FROM attempts WHERE launch = ? ORDER BY n", launch)
	if err != nil {
		return nil, err
	}
	for i := range attempts {
		if err := loadDetails(ctx, c, launch, &attempts[i]); err != nil {
			return nil, err
		}
	}
	return attempts, nil
}

func loadDetails(ctx context.Context, c *sql.Conn, launch string, a *Attempt) (err error) {
	if a.Phases, err = loadSpans(ctx, c, launch, a.N); err != nil {
		return err
	}
	a.Numbers, err = collect(ctx, c, func(rows *sql.Rows) (n Number, err error) {
		return n, rows.Scan(&n.Rank, &n.Name, &n.Value)
	}, "SELECT rank, name, value FROM numbers WHERE launch = ? AND attempt = ? ORDER BY rank, name", launch, a.N)
	if err != nil {
		return err
	}
	a.Patches, err = loadPatches(ctx, c, launch, a.N)
	if err != nil {
		return err
	}
	a.Changes, err = collect(ctx, c, func(rows *sql.Rows) (r Change, err error) {
		return r, rows.Scan(&r.Rung, &r.Text)
	}, "SELECT rung, text FROM changes WHERE launch = ? AND attempt = ? ORDER BY place", launch, a.N)
	return err
}

func loadPatches(ctx context.Context, c *sql.Conn, launch string, n int) ([]Patch, error) {
	return collect(ctx, c, func(rows *sql.Rows) (p Patch, err error) {
		return p, rows.Scan(&p.Name, &p.State, &p.Effect, &p.Output)
	}, "SELECT name, state, effect, output FROM patches WHERE launch = ? AND attempt = ? ORDER BY name", launch, n)
}

// loadSpans reads the phases of an attempt: the launch's own first, each
// rank's in the order of a start.
func loadSpans(ctx context.Context, c *sql.Conn, launch string, n int) ([]Span, error) {
	spans, err := collect(ctx, c, scanSpan, "SELECT "+spanColumns+" FROM phases WHERE launch = ? AND attempt = ?", launch, n)
	slices.SortFunc(spans, func(a, b Span) int {
		if a.Rank != b.Rank {
			return strings.Compare(a.Rank, b.Rank)
		}
		return int(a.Phase) - int(b.Phase)
	})
	return spans, err
}

// spanColumns are those that scanSpan reads.
const spanColumns = "rank, phase, began, took, complete, quiet, done, total, unit"

func scanSpan(rows *sql.Rows) (Span, error) {
	var (
		s                  Span
		phase              string
		began, took, quiet int64
	)
	if err := rows.Scan(&s.Rank, &phase, &began, &took, &s.Complete, &quiet, &s.Done, &s.Total, &s.Unit); err != nil {
		return s, err
	}
	s.Began = fromMillis(began)
	s.Took, s.Quiet = time.Duration(took)*time.Millisecond, time.Duration(quiet)*time.Millisecond
	var err error
	s.Phase, err = phases.ParsePhase(phase)
	return s, err
}

// collect reads every row of a query.
func collect[T any](ctx context.Context, c *sql.Conn, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := c.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// MarshalJSON writes a span in the words of `sglaunch explain --json`.
func (s Span) MarshalJSON() ([]byte, error) {
	type progress struct {
		Done  int64  `json:"done"`
		Total int64  `json:"total"`
		Unit  string `json:"unit,omitempty"`
	}
	var p *progress
	if s.Total > 0 {
		p = &progress{s.Done, s.Total, s.Unit}
	}
	return json.Marshal(struct {
		Rank     string       `json:"rank,omitempty"`
		Name     phases.Phase `json:"name"`
		Begin    time.Time    `json:"begin,omitzero"`
		Seconds  float64      `json:"seconds"`
		Complete bool         `json:"complete"`
		Quiet    float64      `json:"quiet_seconds,omitempty"`
		Progress *progress    `json:"progress,omitempty"`
	}{s.Rank, s.Phase, s.Began, s.Took.Seconds(), s.Complete, s.Quiet.Seconds(), p})
}
