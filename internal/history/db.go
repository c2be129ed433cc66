package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/mattn/go-sqlite3"

	"sglaunch/internal/plain"
)

// Bounds of what a database may cost a launch.
const (
	callLimit   = 5 * time.Second       // of one call, where its context allows more
	busyTimeout = 2 * time.Second       // another launch writes for milliseconds
	lockRetry   = 20 * time.Millisecond // while another launch sets a corrupt file aside
	fileMode    = 0o600
)

// DB is an open database. Its methods may be called from any goroutine; they
// take turns.
type DB struct {
	path string
	sql  *sql.DB
	use  *flock.Flock  // shared: no other launch sets the file aside meanwhile; nil where it is read as it is
	turn chan struct{} // holds one token while a call works, or hangs

	// Aside is where Open put a damaged file; "" = it found none.
	Aside string
}

// Open opens the database at path and makes it where it is missing. A file
// that is no sound database is set aside under a name of its own and Aside
// tells so; a database of a newer sglaunch is refused with ErrNewer.
func Open(ctx context.Context, path string) (*DB, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	db, err := bounded(ctx, cancel, func() (*DB, error) { return open(ctx, path, steps) }, discard)
	if err != nil {
		return nil, fmt.Errorf("cannot open the history in %q: %w", path, err)
	}
	return db, nil
}

func open(ctx context.Context, path string, steps []string) (*DB, error) {
	db, err := openOnce(ctx, path, steps)
	if !isCorrupt(err) {
		return db, err
	}
	aside, err := setAside(ctx, path, err)
	if err != nil {
		return nil, err
	}
	if db, err = openOnce(ctx, path, steps); err != nil {
		return nil, err
	}
	db.Aside = aside
	return db, nil
}

func openOnce(ctx context.Context, path string, steps []string) (_ *DB, err error) {
	use := lockOf(path)
	if _, err := use.TryRLockContext(ctx, lockRetry); err != nil {
		return nil, plain.Error(err)
	}
	if err := touch(path); err != nil {
		return nil, errors.Join(err, use.Close())
	}
	db, err := newDB(path, dsn(path, "mode", "rw"))
	if err != nil {
		return nil, errors.Join(err, use.Close())
	}
	db.use = use
	conn, err := db.sql.Conn(ctx)
	if err == nil {
		err = errors.Join(prepare(ctx, conn, path, steps), conn.Close())
	}
	if err != nil {
		discard(db)
		return nil, err
	}
	return db, nil
}

func newDB(path, dsn string) (*DB, error) {
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &DB{path: path, sql: db, turn: make(chan struct{}, 1)}, nil
}

// prepare proves the file sound and brings it up to date.
func prepare(ctx context.Context, conn *sql.Conn, path string, steps []string) error {
	if err := check(ctx, conn); err != nil {
		return err
	}
	// A refusal keeps the mode that the file has; both are safe.
	if _, err := conn.ExecContext(ctx, "PRAGMA journal_mode = "+journalMode(path)); err != nil {
		return err
	}
	return migrate(ctx, conn, steps)
}

// touch makes the file ours alone before SQLite would make it by the umask;
// its companions get the mode of the file.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return plain.Error(err)
	}
	return f.Close()
}

// dsn names a database to the driver, with more parameters in pairs.
func dsn(path string, more ...string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	query := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"on"},
		"_synchronous":  {"full"}, // a record survives a power cut
	}
	for pair := range slices.Chunk(more, 2) {
		query.Set(pair[0], pair[1])
	}
	return (&url.URL{Scheme: "file", Path: abs, RawQuery: query.Encode()}).String()
}

// release gives everything back, for a DB that nobody uses any more.
func (db *DB) release() error {
	err := db.sql.Close()
	if db.use != nil {
		err = errors.Join(err, db.use.Close())
	}
	return err
}

// discard is for a DB that nobody waits for any more.
func discard(db *DB) { _ = db.release() }

// Close closes the database. A call that hangs is left behind.
func (db *DB) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	select {
	case db.turn <- struct{}{}: // and never given back: later calls are refused
	case <-ctx.Done():
		return fmt.Errorf("cannot close the history in %q: a call hangs", db.path)
	}
	_, err := bounded(ctx, cancel, func() (struct{}, error) {
		return struct{}{}, db.release()
	}, func(struct{}) {})
	if err != nil {
		return fmt.Errorf("cannot close the history in %q: %w", db.path, err)
	}
	return nil
}

// read runs work on one consistent state of the database.
func read[T any](ctx context.Context, db *DB, what string, work func(context.Context, *sql.Conn) (T, error)) (T, error) {
	return call(ctx, db, what, "BEGIN DEFERRED", work)
}

// write runs work in one transaction, wholly or not at all. It asks for the
// write lock first: a transaction that begins by reading can be refused later.
func (db *DB) write(ctx context.Context, what string, work func(context.Context, *sql.Conn) error) error {
	_, err := call(ctx, db, what, "BEGIN IMMEDIATE", func(ctx context.Context, c *sql.Conn) (struct{}, error) {
		return struct{}{}, work(ctx, c)
	})
	return err
}

// call takes the turn and works in a goroutine of its own, because a disk that
// hangs does not listen to contexts. The goroutine keeps the turn, so at most
// one hangs for each DB.
func call[T any](ctx context.Context, db *DB, what, begin string, work func(context.Context, *sql.Conn) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	select {
	case db.turn <- struct{}{}:
	case <-ctx.Done():
		cancel()
		var none T
		return none, fmt.Errorf("cannot %s: an earlier call to the history still works: %w", what, ctx.Err())
	}
	result, err := bounded(ctx, cancel, func() (result T, err error) {
		defer func() { <-db.turn }()
		conn, err := db.sql.Conn(ctx)
		if err != nil {
			return result, err
		}
		defer conn.Close()
		err = inTransaction(ctx, conn, begin, func() (err error) {
			result, err = work(ctx, conn)
			return err
		})
		return result, err
	}, func(T) {})
	if err != nil {
		return result, fmt.Errorf("cannot %s: %w", what, err)
	}
	return result, nil
}

// bounded returns when work is done or the context is over, whichever is
// first. What comes too late goes to late. It owns cancel.
func bounded[T any](ctx context.Context, cancel context.CancelFunc, work func() (T, error), late func(T)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	answers := make(chan answer) // taken by the caller, or nobody
	go func() {
		defer cancel()
		result, err := work()
		select {
		case answers <- answer{result, err}:
		case <-ctx.Done():
			if err == nil {
				late(result)
			}
		}
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no answer in time: %w", ctx.Err())
	}
}

// inTransaction commits what work did, or nothing.
func inTransaction(ctx context.Context, conn *sql.Conn, begin string, work func() error) error {
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	err := work()
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// Not by ctx, which may be what ended the work. A transaction that
		// SQLite has ended itself gives an error that says nothing new.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

func isCorrupt(err error) bool {
	var e sqlite3.Error
	return errors.Is(err, errUnsound) || errors.As(err, &e) && (e.Code == sqlite3.ErrCorrupt || e.Code == sqlite3.ErrNotADB)
}
