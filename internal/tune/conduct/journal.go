package conduct

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// ErrRunning says that another tuner holds the journal of the study.
var ErrRunning = errors.New("another sglaunch tune run works on it")

// errDamaged says that a journal has a line, not the last one, that is not what
// was written.
var errDamaged = errors.New("the journal is damaged")

// Journal is the memory of a night: one record a line, each with its checksum,
// each on disk before Append returns. What a tuner does it writes down before
// (an intent) and after (a verdict), so that a tuner that was killed anywhere
// can be taken up by the next one. Not for several goroutines.
type Journal struct {
	file *os.File
	lock *flock.Flock
	end  int64 // of the last whole record
}

// Names in the folder of a study.
const (
	journalName = "journal.jsonl"
	lockName    = "lock"
)

// lockPatience outlasts whoever only looks whether the lock is held.
const lockPatience = time.Second

// recordMost bounds one line; a record holds excerpts, never whole logs.
const recordMost = 4 << 20

// line is the frame of a record. The checksum is that of the record's bytes as
// they stand in the line.
type line struct {
	Sum    string          `json:"sum"`
	Record json.RawMessage `json:"record"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(record []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(record, castagnoli)) }

// OpenJournal takes the journal in a folder, which is made where it is missing,
// and returns the records that it holds. A last line that was not finished is
// cut off; cut is its length. ErrRunning: somebody else has it.
func OpenJournal(dir string) (j *Journal, records []json.RawMessage, cut int, err error) {
	if err := os.MkdirAll(dir, statedir.DirMode); err != nil {
		return nil, nil, 0, fmt.Errorf("cannot make the folder of the study: %w", err)
	}
	lock := flock.New(filepath.Join(dir, lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(statedir.FileMode))
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, lockPatience/20); err != nil {
		_ = lock.Close()
		if ctx.Err() != nil {
			return nil, nil, 0, ErrRunning
		}
		return nil, nil, 0, fmt.Errorf("cannot lock the study: %w", err)
	}
	j = &Journal{lock: lock}
	if records, cut, err = j.open(filepath.Join(dir, journalName)); err != nil {
		return nil, nil, 0, errors.Join(err, j.Close())
	}
	return j, records, cut, nil
}

// open reads what is there and stands behind it. The first record of a new
// journal makes its name durable, too.
func (j *Journal) open(path string) (records []json.RawMessage, cut int, err error) {
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, statedir.FileMode); err != nil {
		return nil, 0, fmt.Errorf("cannot open the journal: %w", err)
	}
	data, err := io.ReadAll(j.file)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the journal: %w", err)
	}
	records, whole, err := parseJournal(data)
	if err != nil {
		return nil, 0, err
	}
	j.end = int64(whole)
	if err := j.file.Truncate(j.end); err != nil {
		return nil, 0, fmt.Errorf("cannot cut the journal's last line: %w", err)
	}
	return records, len(data) - whole, syncDir(filepath.Dir(path))
}

// ReadJournal reads the records of a study while its tuner may be writing. A
// study that was never run has none.
func ReadJournal(dir string) ([]json.RawMessage, error) {
	data, err := os.ReadFile(filepath.Join(dir, journalName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}
	records, _, err := parseJournal(data)
	return records, err
}

// parseJournal takes the lines apart; whole is where the last good one ends.
// Whatever follows it is a line that was not finished: a record that is not on
// disk was never acted upon. Bad lines before a good one are damage.
func parseJournal(data []byte) (records []json.RawMessage, whole int, err error) {
	bad := 0
	for n, at := 1, 0; at < len(data); n++ {
		text, _, finished := bytes.Cut(data[at:], []byte{'\n'})
		next := at + len(text) + 1
		record, ok := parseLine(text)
		switch {
		case finished && ok && bad == 0:
			records, whole = append(records, record), next
		case finished && ok:
			return nil, 0, fmt.Errorf("cannot use line %d of the journal: %w; move the folder of the study away to begin anew", bad, errDamaged)
		case bad == 0:
			bad = n
		}
		at = next
	}
	return records, whole, nil
}

func parseLine(text []byte) (json.RawMessage, bool) {
	var l line
	if len(text) > recordMost || json.Unmarshal(text, &l) != nil || len(l.Record) == 0 {
		return nil, false
	}
	return l.Record, l.Sum == sum(l.Record)
}

// Append writes one record. When it returns without an error the record
// survives a kill and a power cut; with one, the journal is as it was before.
func (j *Journal) Append(record any) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot encode a record: %w", err)
	}
	text, err := json.Marshal(line{Sum: sum(raw), Record: raw})
	if err != nil {
		return fmt.Errorf("cannot encode a record: %w", err)
	}
	if text = append(text, '\n'); len(text) > recordMost {
		return fmt.Errorf("cannot write a record of %d bytes: a record has at most %d", len(text), recordMost)
	}
	if err := j.write(text); err != nil {
		_ = j.file.Truncate(j.end) // half a record; where even that fails, the next reader cuts it
		return fmt.Errorf("cannot write to the journal: %w", err)
	}
	j.end += int64(len(text))
	return nil
}

func (j *Journal) write(text []byte) error {
	if _, err := j.file.WriteAt(text, j.end); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close lets the next tuner have the journal.
func (j *Journal) Close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close())
}

// syncDir makes new names in a folder survive a power cut.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Decode reads what a journal holds as the records of a night.
func Decode(raw []json.RawMessage) ([]tune.Record, error) {
	records := make([]tune.Record, len(raw))
	for i, text := range raw {
		if err := json.Unmarshal(text, &records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}
