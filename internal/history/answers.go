package history

import (
	"context"
	"database/sql"
	"time"
)

// CheckFigures begins the names of what an output check has measured.
const CheckFigures = "check_"

// Checked reads the figures of the newest start of a model whose answers were
// found to be sound, by name; empty where there is none.
func (db *DB) Checked(ctx context.Context, model string) (map[string]float64, error) {
	return read(ctx, db, "read what the answers were like", func(ctx context.Context, c *sql.Conn) (map[string]float64, error) {
		type place struct {
			launch string
			n      int
		}
		newest, err := collect(ctx, c, func(rows *sql.Rows) (p place, err error) {
			return p, rows.Scan(&p.launch, &p.n)
		}, `SELECT a.launch, a.n FROM attempts a JOIN numbers f ON f.launch = a.launch AND f.attempt = a.n
			WHERE a.model = ? AND f.rank = '' AND f.name = 'check_answers' ORDER BY a.launch DESC, a.n DESC LIMIT 1`, model)
		if err != nil || len(newest) == 0 {
			return nil, err
		}
		found, err := collect(ctx, c, func(rows *sql.Rows) (n Number, err error) {
			return n, rows.Scan(&n.Name, &n.Value)
		}, "SELECT name, value FROM numbers WHERE launch = ? AND attempt = ? AND rank = '' AND name LIKE 'check\\_%' ESCAPE '\\'",
			newest[0].launch, newest[0].n)
		figures := map[string]float64{}
		for _, n := range found {
			figures[n.Name] = n.Value
		}
		return figures, err
	})
}

// Wrong is a patch with which a server gave wrong answers, on such GPUs with
// such a FlashInfer.
type Wrong struct {
	Patch      string    `json:"patch"`
	Content    string    `json:"content"`              // digest of what it changes: another content is another patch
	GPU        string    `json:"gpu,omitempty"`        // names; "" = not known
	FlashInfer string    `json:"flashinfer,omitempty"` // version; "" = not known
	Launch     string    `json:"launch"`               // in which it was found
	At         time.Time `json:"at"`
	Reason     string    `json:"reason"`
}

// With says on what it was found: " with FlashInfer 0.6.3 on NVIDIA H200".
func (w Wrong) With() string {
	text := ""
	if w.FlashInfer != "" {
		text += " with FlashInfer " + w.FlashInfer
	}
	if w.GPU != "" {
		text += " on " + w.GPU
	}
	return text
}

// RecordWrong remembers a patch for its wrong answers, beyond the launch.
func (db *DB) RecordWrong(ctx context.Context, w Wrong) error {
	return db.write(ctx, "remember patch "+w.Patch, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, "INSERT OR REPLACE INTO wrong (patch, content, gpu, flashinfer, launch, at, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
			w.Patch, w.Content, w.GPU, w.FlashInfer, w.Launch, millis(w.At), w.Reason)
		return err
	})
}

// ForgetWrong clears the name of a patch: of what one launch has found, or of
// all where launch is "". It tells how many marks are gone.
func (db *DB) ForgetWrong(ctx context.Context, patch, launch string) (n int64, err error) {
	err = db.write(ctx, "clear patch "+patch, func(ctx context.Context, c *sql.Conn) error {
		done, err := c.ExecContext(ctx, "DELETE FROM wrong WHERE patch = ? AND (? = '' OR launch = ?)", patch, launch, launch)
		if err == nil {
			n, err = done.RowsAffected()
		}
		return err
	})
	return n, err
}

// Wrong lists the patches that are remembered for wrong answers, by name, the
// newest first.
func (db *DB) Wrong(ctx context.Context) ([]Wrong, error) {
	return read(ctx, db, "read which patches gave wrong answers", func(ctx context.Context, c *sql.Conn) ([]Wrong, error) {
		return collect(ctx, c, func(rows *sql.Rows) (w Wrong, err error) {
			var at int64
			err = rows.Scan(&w.Patch, &w.Content, &w.GPU, &w.FlashInfer, &w.Launch, &at, &w.Reason)
			w.At = fromMillis(at)
			return w, err
		}, "SELECT patch, content, gpu, flashinfer, launch, at, reason FROM wrong ORDER BY patch, at DESC")
	})
}
