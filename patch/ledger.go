package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Owner is the process for whose life a patch stays: the one that holds the
// server. Pid and start time together name it for good within one boot.
type Owner struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // field 22 of /proc/PID/stat: clock ticks since boot
	BootID    string `json:"boot_id"`
	Launch    string `json:"launch"`
}

// Ledger owns one state directory of patches. Its methods may be called from
// any goroutine and any process at once; each takes the lock for as long as it
// changes something.
type Ledger struct {
	dir  string
	disk disk
	now  func() time.Time
	ask  func(context.Context, Interpreter, question) (*whereabouts, error)

	keepsakes sync.Map // by launch: *keepsake
}

const (
	journalName   = "journal"
	lockName      = "lock"
	originalsName = "originals" // contents by hash
	linksName     = "links"     // hard links of originals
	asideName     = "aside"     // what a forced revert replaced, for a person
	overlaysName  = "overlays"  // folders of copies that are imported, one a launch
)

// OpenLedger opens the state directory, and makes it where it is absent. It
// must outlive the container or the machine's restart for recovery to work.
func OpenLedger(dir string) (*Ledger, error) { return openLedger(dir, osDisk{}) }

func openLedger(dir string, d disk) (*Ledger, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the patch ledger: %w", err)
	}
	l := &Ledger{dir: dir, disk: d, now: time.Now, ask: askInterpreter}
	if err := l.makeFolders(); err != nil {
		return nil, err
	}
	return l, nil
}

// makeFolders makes those that are absent: at first all, later those that
// somebody has removed.
func (l *Ledger) makeFolders() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("cannot open the patch ledger: %w", err)
	}
	for _, name := range []string{originalsName, linksName, overlaysName} {
		if err := l.disk.Mkdir(l.path(name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot open the patch ledger: %w", err)
		}
	}
	return nil
}

func askInterpreter(ctx context.Context, in Interpreter, q question) (*whereabouts, error) {
	return in.locate(ctx, q)
}

func (l *Ledger) path(parts ...string) string {
	return filepath.Join(append([]string{l.dir}, parts...)...)
}

// read looks at the journal without the lock: a moment's picture.
func (l *Ledger) read() (*book, error) {
	content, err := os.ReadFile(l.path(journalName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the patch ledger: %w", err)
	}
	b, _, _, err := fold(content)
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal %s: %w", l.path(journalName), err)
	}
	return b, nil
}

// session is the ledger under its lock.
type session struct {
	*Ledger
	ctx     context.Context
	journal *journal
	book    *book // the journal's
	locks   []*flock.Flock
}

// How long another sglaunch, or an installer, may hold a lock: far longer than
// they need, short enough that a launch does not seem to hang.
const (
	lockLimit = time.Minute
	lockPoll  = 20 * time.Millisecond
)

// locked runs do under the ledger's lock with the journal read anew.
func (l *Ledger) locked(ctx context.Context, do func(*session) error) (err error) {
	s := &session{Ledger: l, ctx: ctx}
	defer func() { err = errors.Join(err, s.unlock()) }()
	if err := l.makeFolders(); err != nil {
		return err
	}
	if err := s.lock(l.path(lockName), os.O_CREATE|os.O_RDONLY); err != nil {
		return err
	}
	s.journal, err = openJournal(l.disk, l.path(journalName))
	if err != nil {
		return err
	}
	s.book = s.journal.book
	if err := s.sweep(); err != nil {
		return err
	}
	if err := errors.Join(do(s), s.sweep()); err != nil {
		return err
	}
	// A journal that stays long is still a journal; the next session tries again.
	_ = s.journal.compact(l.now())
	return nil
}

// lock takes one more lock until the session ends, on a file or a folder. It is
// opened close-on-exec: no child keeps a lock for us.
func (s *session) lock(path string, flags int) error {
	if slices.ContainsFunc(s.locks, func(f *flock.Flock) bool { return f.Path() == path }) {
		return nil // a second lock of our own would wait for the first
	}
	ctx, cancel := context.WithTimeoutCause(s.ctx, lockLimit, fmt.Errorf("somebody else has held the lock for %s", lockLimit))
	defer cancel()
	f := flock.New(path, flock.SetFlag(flags), flock.SetPermissions(0o600))
	held, err := f.TryLockContext(ctx, lockPoll)
	if err != nil || !held {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return errors.Join(fmt.Errorf("cannot lock %s: %w", path, err), f.Close())
	}
	s.locks = append(s.locks, f)
	return nil
}

func (s *session) unlock() error {
	var errs []error
	for _, f := range slices.Backward(s.locks) {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// sweep removes what a crash left in the ledger and no record speaks of. Without
// any record the originals stay: a lost journal must not cost them.
func (s *session) sweep() error {
	names := []string{linksName, overlaysName}
	if s.journal.records > 0 {
		names = append(names, originalsName)
	}
	wanted := s.wanted()
	for _, name := range names {
		entries, err := os.ReadDir(s.path(name))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if wanted[filepath.Join(name, e.Name())] {
				continue
			}
			if err := s.discard(s.path(name, e.Name())); err != nil {
				return fmt.Errorf("cannot tidy the patch ledger: %w", err)
			}
		}
	}
	return nil
}

// wanted names all that the book still needs, relative to the ledger.
func (s *session) wanted() map[string]bool {
	wanted := map[string]bool{}
	for _, e := range s.book.Entries {
		wanted[filepath.Join(originalsName, e.Before)] = true
		wanted[filepath.Join(linksName, e.Link)] = true
		for _, p := range e.Pycs {
			wanted[filepath.Join(originalsName, p.Sum)] = true
			wanted[filepath.Join(linksName, p.Link)] = true
		}
	}
	for _, d := range s.book.Drifts {
		wanted[filepath.Join(originalsName, d.Before)] = true
	}
	for _, l := range s.book.Leases {
		wanted[filepath.Join(overlaysName, l.Overlay)] = true
	}
	return wanted
}

// discard removes a file or a folder tree of ours, and follows no link.
func (s *session) discard(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.discard(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	return removeIfThere(s.disk, path)
}

// Held is a file that holds patched content of ours, or did until somebody
// changed it.
type Held struct {
	Path     string    `json:"path"`
	State    State     `json:"state"` // applied | pristine (a crash before the write) | drifted | missing
	Patches  []string  `json:"patches,omitempty"`
	Launches []Owner   `json:"launches,omitempty"`
	Kept     bool      `json:"kept,omitempty"` // revert = "never"
	Before   string    `json:"sha256_before"`
	After    string    `json:"sha256_after"`
	Found    string    `json:"sha256_found,omitempty"`
	Original string    `json:"original"` // where its content is kept
	Since    time.Time `json:"since,omitzero"`
}

// Status tells what the ledger holds, by path. It changes nothing.
func (l *Ledger) Status() ([]Held, error) {
	b, err := l.read()
	if err != nil {
		return nil, err
	}
	var all []Held
	for _, e := range b.Entries {
		h := Held{Path: e.Path, Patches: e.Patches, Kept: e.Keep, Before: e.Before, After: e.After, Original: l.path(originalsName, e.Before)}
		h.State, h.Found = e.look()
		for _, name := range b.holders(e.Path) {
			h.Launches = append(h.Launches, b.Leases[name].Owner)
			h.Since = b.Leases[name].Since
		}
		all = append(all, h)
	}
	for _, d := range b.Drifts {
		h := Held{Path: d.Path, Patches: d.patches(), Before: d.Before, After: d.After, Original: l.path(originalsName, d.Before), Since: d.At}
		if h.State, h.Found = d.look(); h.State != Pristine {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Held) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// Knows tells whether anything may be patched for a launch: a ledger that cannot be
// read may say so later.
func (l *Ledger) Knows(launch string) bool {
	b, err := l.read()
	return err != nil || b.Leases[launch] != nil
}

// look says what the file of an entry is now.
func (e *entry) look() (State, string) { return stateOf(e.Path, e.Before, e.After) }

// stateOf tells what became of a file of ours, by the bytes that are there.
func stateOf(path, before, after string) (State, string) {
	now, err := readFile(path)
	switch {
	case err != nil:
		return Missing, ""
	case now.sum == after && now.Link == "":
		return WasApplied, now.sum
	case now.sum == before:
		return Pristine, now.sum
	}
	return Drifted, now.sum
}
