package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sglaunch/internal/plain"
	"sglaunch/internal/statedir"
)

// Keep bounds what launches leave in the state directory; zero bounds nothing.
type Keep struct {
	Launches int           // newest folders, running ones included
	Evidence int64         // bytes of evidence in all folders together
	Age      time.Duration // of evidence
}

// Pruned says what was removed.
type Pruned struct {
	Launches []string // IDs
	Evidence int64    // bytes
}

// Prune removes the oldest launches and the oldest evidence until what is left
// is within keep. A launch that may be running, or that sglaunch recover has
// still to heal, is never touched: only launch.json with an end releases it.
// What cannot be removed is told and does not keep the rest.
func Prune(ctx context.Context, dir statedir.Dir, keep Keep, now time.Time) (Pruned, error) {
	var p Pruned
	launches, err := dir.Launches("")
	if err != nil {
		return p, err
	}
	var failed []error
	kept := launches[:0:0]
	for i, l := range launches { // oldest first
		spare := keep.Launches > 0 && len(launches)-i > keep.Launches
		if !spare || !hasEnded(l) || ctx.Err() != nil {
			kept = append(kept, l)
			continue
		}
		if err := removeLaunch(l); err != nil {
			failed = append(failed, err)
			continue
		}
		p.Launches = append(p.Launches, l.ID)
	}
	freed, err := pruneEvidence(ctx, kept, keep, now)
	p.Evidence = freed
	return p, errors.Join(append(failed, err, ctx.Err())...)
}

// hasEnded reads the one fact of launch.json that matters here. A record that
// cannot be read counts as running.
func hasEnded(l statedir.Launch) bool {
	data, err := os.ReadFile(l.Record())
	if err != nil {
		return false
	}
	var record struct {
		Ended time.Time `json:"ended"`
	}
	return json.Unmarshal(data, &record) == nil && !record.Ended.IsZero()
}

// removeLaunch removes the record last: a kill in between leaves a launch that
// the next Prune still knows to have ended.
func removeLaunch(l statedir.Launch) error {
	entries, err := os.ReadDir(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another launch was faster
	}
	if err != nil {
		return fmt.Errorf("cannot remove launch %q: %w", l.ID, plain.Error(err))
	}
	for _, e := range entries {
		path := filepath.Join(l.Path, e.Name())
		if path == l.Record() {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("cannot remove %q of launch %q: %w", e.Name(), l.ID, plain.Error(err))
		}
	}
	if err := os.RemoveAll(l.Path); err != nil {
		return fmt.Errorf("cannot remove launch %q: %w", l.ID, plain.Error(err))
	}
	return nil
}

// evidence is one attempt's folder of evidence.
type evidence struct {
	path  string
	bytes int64
	at    time.Time // newest file
	ended bool
}

func pruneEvidence(ctx context.Context, launches []statedir.Launch, keep Keep, now time.Time) (freed int64, err error) {
	if keep.Evidence <= 0 && keep.Age <= 0 {
		return 0, nil
	}
	all, total := findEvidence(ctx, launches)
	var failed []error
	for _, e := range all { // oldest first
		old := keep.Age > 0 && now.Sub(e.at) > keep.Age
		big := keep.Evidence > 0 && total > keep.Evidence
		if !e.ended || !old && !big || ctx.Err() != nil {
			continue
		}
		if err := empty(e.path); err != nil {
			failed = append(failed, err)
			continue
		}
		total -= e.bytes
		freed += e.bytes
	}
	return freed, errors.Join(failed...)
}

func findEvidence(ctx context.Context, launches []statedir.Launch) (all []evidence, total int64) {
	for _, l := range launches {
		attempts, err := l.Attempts()
		if err != nil || ctx.Err() != nil {
			continue
		}
		ended := hasEnded(l)
		for _, a := range attempts {
			e := evidence{path: a.Evidence(), ended: ended}
			e.measure()
			if e.bytes > 0 {
				all = append(all, e)
				total += e.bytes
			}
		}
	}
	return all, total
}

func (e *evidence) measure() {
	_ = filepath.WalkDir(e.path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // what cannot be seen cannot be removed either
		}
		if info, err := entry.Info(); err == nil {
			e.bytes += info.Size()
			if info.ModTime().After(e.at) {
				e.at = info.ModTime()
			}
		}
		return nil
	})
}

// empty keeps the folder, which says that there was evidence.
func empty(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another launch was faster
	}
	if err != nil {
		return fmt.Errorf("cannot remove evidence in %q: %w", path, plain.Error(err))
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return fmt.Errorf("cannot remove evidence in %q: %w", path, plain.Error(err))
		}
	}
	return nil
}

// Remembered is how many launches the database keeps, some megabytes; what
// they teach outlives their folders.
const Remembered = 1000

// Forget keeps the newest launches in the database, usually Remembered. A
// launch without an end is kept twice as long: it runs, or its sglaunch was
// killed.
func (db *DB) Forget(ctx context.Context, keep int) error {
	return db.write(ctx, "forget old launches", func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM launches WHERE
			id NOT IN (SELECT id FROM launches ORDER BY id DESC LIMIT ?) AND ended > 0 OR
			id NOT IN (SELECT id FROM launches ORDER BY id DESC LIMIT ?)`, keep, 2*keep)
		return err
	})
}
