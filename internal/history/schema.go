package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrNewer says that the database was written by a newer sglaunch. It is left
// alone.
var ErrNewer = errors.New("it was written by a newer sglaunch")

// steps bring a database from version i to i+1. A step that has been released
// is never changed; docs/history.md explains the columns.
var steps = []string{`
CREATE TABLE launches (
	id      TEXT PRIMARY KEY,             -- folder under launches/; IDs sort by time
	name    TEXT NOT NULL DEFAULT '',
	host    TEXT NOT NULL DEFAULT '',
	command TEXT NOT NULL DEFAULT '[]',   -- JSON array, masked
	machine TEXT NOT NULL DEFAULT '',     -- these five: as the launch was asked for
	model   TEXT NOT NULL DEFAULT '',
	flags   TEXT NOT NULL DEFAULT '',
	version TEXT NOT NULL DEFAULT '',
	patches TEXT NOT NULL DEFAULT '',
	began   INTEGER NOT NULL DEFAULT 0,   -- Unix milliseconds, as all times; 0 = not
	ended   INTEGER NOT NULL DEFAULT 0,
	code    INTEGER,                      -- exit code; NULL until ended
	reason  TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID, STRICT;

CREATE INDEX launches_by_name ON launches (name, id);

CREATE TABLE attempts (
	launch      TEXT NOT NULL REFERENCES launches (id) ON DELETE CASCADE,
	n           INTEGER NOT NULL,
	machine     TEXT NOT NULL DEFAULT '', -- these seven: as the attempt ran
	model       TEXT NOT NULL DEFAULT '',
	flags       TEXT NOT NULL DEFAULT '',
	version     TEXT NOT NULL DEFAULT '',
	patches     TEXT NOT NULL DEFAULT '',
	pages       TEXT NOT NULL DEFAULT '',
	jit         TEXT NOT NULL DEFAULT '',
	began       INTEGER NOT NULL DEFAULT 0,
	ready       INTEGER NOT NULL DEFAULT 0,
	ended       INTEGER NOT NULL DEFAULT 0,
	outcome     TEXT NOT NULL DEFAULT '',
	cause       TEXT NOT NULL DEFAULT '',
	fingerprint TEXT NOT NULL DEFAULT '',
	phase       TEXT NOT NULL DEFAULT '',
	rank        TEXT NOT NULL DEFAULT '',
	text        TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (launch, n)
) WITHOUT ROWID, STRICT;

CREATE INDEX attempts_by_key ON attempts (machine, model, flags, launch);

CREATE TABLE phases (
	launch   TEXT NOT NULL,
	attempt  INTEGER NOT NULL,
	rank     TEXT NOT NULL,               -- '' = the launch as a whole
	phase    TEXT NOT NULL,
	began    INTEGER NOT NULL DEFAULT 0,
	took     INTEGER NOT NULL DEFAULT 0,  -- milliseconds, by a clock that does not jump
	complete INTEGER NOT NULL DEFAULT 0,  -- 1 = a later phase followed
	quiet    INTEGER NOT NULL DEFAULT 0,  -- longest stretch in which nothing moved, milliseconds
	done     INTEGER NOT NULL DEFAULT 0,
	total    INTEGER NOT NULL DEFAULT 0,
	unit     TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (launch, attempt, rank, phase),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;

CREATE TABLE numbers (
	launch  TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	rank    TEXT NOT NULL,
	name    TEXT NOT NULL,                -- kv_tokens, avail_mem_gb, weights_gb, ...
	value   REAL NOT NULL,
	PRIMARY KEY (launch, attempt, rank, name),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;

CREATE TABLE patches (
	launch  TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	name    TEXT NOT NULL,
	state   TEXT NOT NULL DEFAULT '',     -- before: pristine, applied, drifted, ...
	effect  TEXT NOT NULL DEFAULT '',     -- effective, partial, ineffective, ...
	PRIMARY KEY (launch, attempt, name),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;

CREATE TABLE changes (                    -- in what an attempt ran otherwise than asked
	launch  TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	place   INTEGER NOT NULL,             -- in the order of the ladder
	rung    TEXT NOT NULL,
	text    TEXT NOT NULL DEFAULT '',
	PRIMARY KEY (launch, attempt, place),
	FOREIGN KEY (launch, attempt) REFERENCES attempts (launch, n) ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
`, `
ALTER TABLE patches ADD COLUMN output TEXT NOT NULL DEFAULT ''; -- what the output check says: passed, partial, corrupt, innocent

CREATE TABLE wrong (                      -- patches whose server gave wrong answers; outlives the launch
	patch      TEXT NOT NULL,
	content    TEXT NOT NULL,             -- digest of what it changes
	gpu        TEXT NOT NULL,             -- names, '' = not known
	flashinfer TEXT NOT NULL,             -- version, '' = not known
	launch     TEXT NOT NULL,
	at         INTEGER NOT NULL,
	reason     TEXT NOT NULL,
	PRIMARY KEY (patch, content, gpu, flashinfer)
) WITHOUT ROWID, STRICT;
`, `
CREATE TABLE trials (                     -- launches that sglaunch tune has measured; outlive the launch
	launch  TEXT PRIMARY KEY,
	study   TEXT NOT NULL,
	night   INTEGER NOT NULL,             -- when it began
	trial   TEXT NOT NULL,                -- 'baseline', or the ID of a trial
	name    TEXT NOT NULL,
	stage   TEXT NOT NULL,
	machine TEXT NOT NULL,
	model   TEXT NOT NULL,
	metric  TEXT NOT NULL,
	value   REAL NOT NULL,
	at      INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE INDEX trials_by_model ON trials (machine, model, metric, at);
`}

// migrate brings the schema up to date, in one transaction: a kill in between
// leaves the old one.
func migrate(ctx context.Context, conn *sql.Conn, steps []string) error {
	version, err := schemaVersion(ctx, conn)
	if err != nil || version == len(steps) {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("%w (schema %d, this one knows up to %d)", ErrNewer, version, len(steps))
	}
	return inTransaction(ctx, conn, "BEGIN IMMEDIATE", func() error {
		version, err := schemaVersion(ctx, conn) // another launch may have been faster
		if err != nil {
			return err
		}
		for ; version < len(steps); version++ {
			if _, err := conn.ExecContext(ctx, steps[version]); err != nil {
				return fmt.Errorf("schema step %d: %w", version+1, err)
			}
		}
		_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(steps)))
		return err
	})
}

func schemaVersion(ctx context.Context, conn *sql.Conn) (version int, err error) {
	err = conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	if err == nil && version < 0 {
		return 0, fmt.Errorf("%w: its schema has the number %d", errUnsound, version)
	}
	return version, err
}
