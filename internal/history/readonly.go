package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

// OpenToRead is Open for those who only read: where nothing can be written,
// because the disk is full or was remounted read-only, it shows what is there.
// That may lack the newest records, if sglaunch was killed at the same time.
func OpenToRead(ctx context.Context, path string) (*DB, error) {
	db, err := Open(ctx, path)
	if err == nil || !isUnwritable(err) {
		return db, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	db, asItIs := bounded(ctx, cancel, func() (*DB, error) { return openAsItIs(ctx, path) }, discard)
	if asItIs != nil {
		return nil, err // the first error says what is wrong
	}
	return db, nil
}

// openAsItIs takes the file alone, without its log and without locks.
func openAsItIs(ctx context.Context, path string) (*DB, error) {
	db, err := newDB(path, dsn(path, "mode", "ro", "immutable", "1"))
	if err != nil {
		return nil, err
	}
	conn, err := db.sql.Conn(ctx)
	if err != nil {
		discard(db)
		return nil, err
	}
	defer conn.Close()
	version, err := schemaVersion(ctx, conn)
	if err == nil && version != len(steps) {
		err = fmt.Errorf("it has schema %d, this sglaunch reads %d", version, len(steps))
	}
	if err != nil {
		discard(db)
		return nil, err
	}
	return db, nil
}

func isUnwritable(err error) bool {
	var e sqlite3.Error
	if errors.As(err, &e) {
		switch e.Code {
		case sqlite3.ErrFull, sqlite3.ErrReadonly, sqlite3.ErrCantOpen, sqlite3.ErrIoErr, sqlite3.ErrPerm:
			return true
		}
	}
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
}
