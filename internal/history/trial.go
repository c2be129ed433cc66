package history

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"
)

// Trial is one launch of sglaunch tune that was measured and counts.
type Trial struct {
	Launch  string    `json:"launch"` // its ID
	Study   string    `json:"study"`
	Night   time.Time `json:"night"` // when the night began
	Trial   string    `json:"trial"` // "baseline", or the ID of a trial
	Name    string    `json:"name"`  // for a person
	Stage   string    `json:"stage"` // screen, narrow, confirm
	Machine string    `json:"machine"`
	Model   string    `json:"model"`
	Metric  string    `json:"metric"`
	Value   float64   `json:"value"` // of the metric
	At      time.Time `json:"at"`
}

// RecordTrials records measured launches; the newest word on a launch counts.
// What is no finite number is left out.
func (db *DB) RecordTrials(ctx context.Context, trials ...Trial) error {
	return db.write(ctx, "record measured launches", func(ctx context.Context, c *sql.Conn) error {
		for _, t := range trials {
			if t.Launch == "" {
				return errNoID
			}
			if math.IsNaN(t.Value) || math.IsInf(t.Value, 0) {
				continue
			}
			_, err := c.ExecContext(ctx, `INSERT OR REPLACE INTO trials
				(launch, study, night, trial, name, stage, machine, model, metric, value, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				t.Launch, t.Study, millis(t.Night), t.Trial, t.Name, t.Stage, t.Machine, t.Model, t.Metric, t.Value, millis(t.At))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Trials reads the newest measured launches of a model on a machine by one
// metric, the oldest first.
func (db *DB) Trials(ctx context.Context, machine, model, metric string, limit int) ([]Trial, error) {
	return read(ctx, db, "read measured launches", func(ctx context.Context, c *sql.Conn) ([]Trial, error) {
		trials, err := collect(ctx, c, scanTrial, `SELECT launch, study, night, trial, name, stage, machine, model, metric, value, at
			FROM trials WHERE machine = ? AND model = ? AND metric = ? ORDER BY at DESC, launch DESC LIMIT ?`, machine, model, metric, limit)
		slices.Reverse(trials)
		return trials, err
	})
}

func scanTrial(rows *sql.Rows) (Trial, error) {
	var (
		t         Trial
		night, at int64
	)
	err := rows.Scan(&t.Launch, &t.Study, &night, &t.Trial, &t.Name, &t.Stage, &t.Machine, &t.Model, &t.Metric, &t.Value, &at)
	t.Night, t.At = fromMillis(night), fromMillis(at)
	return t, err
}
