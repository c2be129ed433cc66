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
// until the file has its original bytes again, is patched anew, or a person says
// that the original is to come back in spite of the change.

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
			if err := s.force(s.book.Drifts[path], reverted); err != nil {
				return fmt.Errorf("cannot restore %s: %w", path, err)
			}
		}
		return nil
	})
	return reverted, err
}

// force brings back one file and says so in place of the drift.
func (s *session) force(d *drift, r *Reverted) error {
	if d.Entry == nil {
		return fmt.Errorf("its mode and owner are not on record; its original is %s", s.path(originalsName, d.Before))
	}
	if err := s.lockFolders([]string{d.Entry.Lock}, ""); err != nil {
		return err
	}
	if _, err := s.original(d.Before); err != nil {
		return err
	}
	aside, err := s.putAside(d.Path)
	if err != nil {
		return fmt.Errorf("cannot keep what it holds now: %w", err)
	}
	if err := removeIfThere(s.disk, d.Entry.Temp); err != nil {
		return err
	}
	due := []*entry{d.Entry}
	times := foundTimes(due)
	if err := errors.Join(s.putBack(d.Entry), s.settleFolders(due, times)); err != nil {
		return err
	}
	if err := s.journal.add(record{Kind: recRestored, Time: s.now(), Path: d.Path}); err != nil {
		return err
	}
	r.Drifted = slices.DeleteFunc(r.Drifted, func(path string) bool { return path == d.Path })
	delete(r.Originals, d.Path)
	r.Restored = append(r.Restored, d.Path)
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
		if !s.book.Drifts[path].healed() {
			continue
		}
		if err := s.journal.add(record{Kind: recRestored, Time: s.now(), Path: path}); err != nil {
			return err
		}
	}
	return nil
}

// healed tells whether the file has the bytes of the original again.
func (d *drift) healed() bool {
	now, err := readFile(d.Path)
	return err == nil && now.sum == d.Before
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
