package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A file that somebody changed under a patch is left alone, and its record stays
// until the file has its original bytes again, or our patched ones, which are
// taken back then; until it is patched anew; or until a person says that the
// original is to come back in spite of the change.

// RevertForced brings back files that somebody changed while they were patched:
// bytes, mode, owner, attributes and time. What they hold now is put aside
// first, see Reverted.Aside. names are paths or names of patches, at least one;
// what of them did not drift is reverted as by RevertKept. A file that a launch
// needs is left to it.
func (l *Ledger) RevertForced(ctx context.Context, names ...string) (*Reverted, error) {
	if len(names) == 0 {
		return nil, errors.New("cannot force a revert: no file and no patch is named")
	}
	reverted := &Reverted{}
	err := l.locked(ctx, func(s *session) error {
		if err := s.revertKept(reverted, names); err != nil {
			return err
		}
		for _, path := range slices.Clone(reverted.Drifted) {
			if err := s.force(path, reverted); err != nil {
				return fmt.Errorf("cannot restore %s: %w", path, err)
			}
		}
		return nil
	})
	return reverted, err
}

// force brings back one file and says so in place of the drift.
func (s *session) force(path string, r *Reverted) error {
	e := s.book.Entries[path]
	if e == nil {
		e = s.book.Drifts[path].Entry
	}
	if e == nil {
		return fmt.Errorf("its mode and owner are not on record; its original is %s", r.Originals[path])
	}
	if err := s.lockFolders([]string{e.Lock}, ""); err != nil {
		return err
	}
	if _, err := s.original(e.Before); err != nil {
		return err
	}
	aside, err := s.putAside(path)
	if err != nil {
		return fmt.Errorf("cannot keep what it holds now: %w", err)
	}
	if err := removeIfThere(s.disk, e.Temp); err != nil {
		return err
	}
	due := []*entry{e}
	times := foundTimes(due)
	if err := errors.Join(s.putBack(e), s.settleFolders(due, times)); err != nil {
		return err
	}
	if err := s.journal.add(record{Kind: recRestored, Time: s.now(), Path: path}); err != nil {
		return err
	}
	r.Drifted = slices.DeleteFunc(r.Drifted, func(drifted string) bool { return drifted == path })
	delete(r.Originals, path)
	r.Restored = append(r.Restored, path)
	if aside != "" {
		r.Aside = append(r.Aside, aside)
	}
	return nil
}

// putAside stores what a file holds for the person who wrote it, and returns
// where; "" for a file that is gone. Nothing removes it but a person.
func (s *session) putAside(path string) (string, error) {
	now, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if err := s.disk.Mkdir(s.path(asideName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	aside := s.path(asideName, now.sum[:12]+"-"+filepath.Base(path))
	return aside, s.store(aside, now.content)
}

// forgive closes the drifts whose files have their original bytes again.
func (s *session) forgive() error {
	for _, path := range s.book.drifted() {
		if state, _ := s.book.Drifts[path].look(); state != Pristine {
			continue
		}
		if err := s.journal.add(record{Kind: recRestored, Time: s.now(), Path: path}); err != nil {
			return err
		}
	}
	return nil
}

// look says what the file is now, whatever it was when it drifted.
func (d *drift) look() (State, string) { return stateOf(d.Path, d.Before, d.After) }

// returned lists the drifted files that have our patched bytes again and that no
// launch needs, sorted by path.
func (b *book) returned() []*entry {
	var all []*entry
	for _, path := range b.drifted() {
		d := b.Drifts[path]
		if state, _ := d.look(); state == WasApplied && d.Entry != nil && len(b.holders(path)) == 0 {
			all = append(all, d.Entry)
		}
	}
	return all
}

// drifted lists the paths with a drift on record, sorted.
func (b *book) drifted() []string {
	var paths []string
	for path := range b.Drifts {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// patches names the patches that the file had, where they are on record.
func (d *drift) patches() []string {
	if d.Entry == nil {
		return nil
	}
	return d.Entry.Patches
}

// selection is what a person named, of all that the book holds.
type selection []string

// check refuses a name that means nothing.
func (names selection) check(b *book) error {
	for _, name := range names {
		if !(selection{name}).meansAny(b) {
			return fmt.Errorf("cannot revert %q: %w", name, ErrUnknown)
		}
	}
	return nil
}

func (names selection) meansAny(b *book) bool {
	for path, e := range b.Entries {
		if names.means(path, e.Patches) {
			return true
		}
	}
	for path, d := range b.Drifts {
		if names.means(path, d.patches()) {
			return true
		}
	}
	return false
}

// means tells whether a file is meant; where nothing is named, all are.
func (names selection) means(path string, patches []string) bool {
	if len(names) == 0 {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool {
		if slices.Contains(patches, name) {
			return true
		}
		abs, err := filepath.Abs(name)
		return err == nil && abs == path
	})
}

// drift is the error that names the files left alone and their originals.
func (r Reverted) drift() error {
	if len(r.Drifted) == 0 {
		return nil
	}
	var files []string
	for _, path := range r.Drifted {
		files = append(files, fmt.Sprintf("%s (its original is kept in %s)", path, r.Originals[path]))
	}
	return fmt.Errorf("cannot restore %s: %w", strings.Join(files, ", "), ErrDrifted)
}
