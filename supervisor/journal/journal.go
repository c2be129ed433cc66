// Package journal is the record of a launch, one line for each step: the event
// and the effects that followed from it. A new supervisor folds it to know what
// the old one knew; `sglaunch replay` asks of each line whether today's code
// decides the same.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"sglaunch/supervisor/machine"
)

// Version is the form of the journal; an older one is still read.
const Version = 1

// Header is the first line of a journal.
type Header struct {
	V       int             `json:"v"`
	Launch  string          `json:"launch"`
	Time    time.Time       `json:"time"`
	Options machine.Options `json:"options"`
	// Where the journal goes on from an older one: what the machine knew, and
	// which observations were journalled before.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Seen
}

// Seen is how far the observations of each attempt have gone into journals, so that a
// new reader goes on where the old one stopped. The zero value is none.
type Seen struct {
	Count map[int]int   `json:"seen,omitempty"`
	To    map[int]int64 `json:"seen_to,omitempty"` // offset of the last line that one is about
}

// Add counts an event that is an observation.
func (s *Seen) Add(e machine.Event) {
	o, ok := e.Body.(machine.Seen)
	switch {
	case !ok:
		return
	case s.Count == nil:
		s.Count = map[int]int{}
	}
	if s.To == nil { // a journal before it had none
		s.To = map[int]int64{}
	}
	s.Count[e.Attempt]++
	s.To[e.Attempt] = max(s.To[e.Attempt], o.Offset)
}

// Clone returns one that is not changed with s.
func (s Seen) Clone() Seen { return Seen{maps.Clone(s.Count), maps.Clone(s.To)} }

// Machine returns the machine as the journal found it.
func (h Header) Machine() (*machine.Machine, error) {
	if len(h.Snapshot) == 0 {
		return machine.New(h.Options)
	}
	return machine.Restore(h.Options, h.Snapshot)
}

// Entry is one step.
type Entry struct {
	Event   machine.Event    `json:"step"`
	Effects []machine.Effect `json:"effects,omitempty"`
	// Lost counts entries before this one that the disk did not take in time.
	Lost int `json:"lost,omitempty"`
}

// depth bounds the entries that wait for a slow disk. At the usual few
// a second this is an hour; beyond it entries are counted, not kept.
const depth = 8192

// Journal writes entries off the loop. A disk that hangs never holds a decision.
type Journal struct {
	path    string
	entries chan written
	done    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	lost    int   // since the newest entry that was written
	dropped int64 // in all
	err     error
}

// Create begins a new journal; the file must not exist.
func Create(path string, h Header) (*Journal, error) {
	f, err := wholeFile(path, h, func() error {
		if _, err := os.Lstat(path); err == nil {
			return fs.ErrExist
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot begin the journal: %w", err)
	}
	return start(path, backlog{file: f}), nil
}

// Append goes on with a journal that a supervisor before began.
func Append(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot go on with the journal: %w", err)
	}
	// A line that the old supervisor left half written ends here, as soon as the
	// disk takes that: a full one keeps no supervisor from going on.
	return start(path, backlog{f, []byte("\n")}), nil
}

// written is one thing to write: an entry, or the beginning of a new file.
type written struct {
	entry  Entry
	rotate *Header
}

func start(path string, b backlog) *Journal {
	j := &Journal{path: path, entries: make(chan written, depth), done: make(chan struct{})}
	go j.write(b)
	return j
}

// Add hands over one entry without ever waiting.
func (j *Journal) Add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Lost = j.lost
	select {
	case j.entries <- written{entry: e}:
		j.lost = 0
	default:
		j.lost++
		j.dropped++
	}
}

// Dropped is how many entries the disk did not take in time. A nil journal has
// none.
func (j *Journal) Dropped() int64 {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dropped
}

// Rotate lets the journal go on in a new file that begins with h; the old one
// is kept beside it as PATH.1, and one older is removed. It reports whether
// the order was taken; a disk that is behind is not asked for more.
func (j *Journal) Rotate(h Header) bool {
	select {
	case j.entries <- written{rotate: &h}:
		return true
	default:
		return false
	}
}

// Close writes what is waiting, for at most limit, and returns the first error
// that writing met.
func (j *Journal) Close(limit time.Duration) error {
	j.once.Do(func() { close(j.entries) })
	select {
	case <-j.done:
	case <-time.After(limit):
		return fmt.Errorf("cannot finish the journal within %s: the disk does not answer", limit)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

func (j *Journal) write(b backlog) {
	defer close(j.done)
	for next := range j.entries {
		if next.rotate != nil {
			fresh, err := j.nextFile(*next.rotate)
			if err != nil {
				j.note(err) // the old file goes on: nothing is lost
				continue
			}
			j.note(errors.Join(b.flush(), b.file.Close()))
			b = backlog{file: fresh}
			continue
		}
		line, err := json.Marshal(next.entry)
		if err == nil && !b.add(line) {
			j.lose(next.entry)
		}
		if len(j.entries) == 0 || len(b.waiting) > batch {
			err = errors.Join(err, b.flush()) // a supervisor that dies now loses nothing of this
		}
		j.note(err)
	}
	j.note(errors.Join(b.flush(), b.file.Close()))
}

// lose counts an entry that the disk refuses and memory has no room for.
func (j *Journal) lose(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost += e.Lost + 1
	j.dropped++
}

// nextFile begins a new file and keeps the old one beside it.
func (j *Journal) nextFile(h Header) (*os.File, error) {
	f, err := wholeFile(j.path, h, func() error {
		_ = os.Remove(j.path + ".1") // there may be none; Link finds what is left
		return os.Link(j.path, j.path+".1")
	})
	if err != nil {
		return nil, fmt.Errorf("cannot rotate the journal: %w", err)
	}
	return f, nil
}

// wholeFile makes a file whole before it takes its place: a death in between
// leaves a journal that can be read, or none. makeRoom is called before it does.
func wholeFile(path string, h Header, makeRoom func() error) (*os.File, error) {
	h.V = Version
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	fresh := path + ".next"
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(line, '\n'))
	err = errors.Join(err, f.Sync())
	if err == nil {
		err = makeRoom()
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (j *Journal) note(err error) {
	if err == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = fmt.Errorf("cannot write the journal: %w", err)
	}
}
