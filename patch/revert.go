package patch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Reverted is what Revert did, by path.
type Reverted struct {
	Launch   string   `json:"launch"`
	Restored []string `json:"restored,omitempty"` // as they were before
	Clean    []string `json:"clean,omitempty"`    // had their original content already
	Leased   []string `json:"leased,omitempty"`   // another launch still runs on them
	Kept     []string `json:"kept,omitempty"`     // revert = "never"
	Drifted  []string `json:"drifted,omitempty"`  // somebody else changed them: left alone
	Aside    []string `json:"aside,omitempty"`    // where a forced revert keeps what somebody else wrote

	Originals map[string]string `json:"originals,omitempty"` // of the drifted, by path: where the original is kept
}

// Revert undoes what Apply did for a launch. Call it once the launch's process
// tree is gone. The last launch on a file brings it back; a file that is not
// what we wrote is left alone, and the error then is ErrDrifted. What could be
// restored has been, whatever the error; calling again goes on with the rest.
// For a launch that holds nothing it does nothing. A Ledger that applied for the
// launch needs no state directory for it: what somebody removed is made anew.
func (l *Ledger) Revert(ctx context.Context, launch string) (*Reverted, error) {
	reverted := &Reverted{Launch: launch}
	err := l.locked(ctx, func(s *session) error { return errors.Join(s.remind(launch), s.revert(launch, reverted)) })
	if err == nil {
		l.keepsakes.Delete(launch)
		err = reverted.drift()
	}
	return reverted, err
}

// RevertKept undoes the patches with revert = "never" on which no launch runs.
// It is what a person asks for. names are paths or names of patches; none means
// all. A file that is not what we wrote is ErrDrifted each time, and its record
// stays as it was.
func (l *Ledger) RevertKept(ctx context.Context, names ...string) (*Reverted, error) {
	reverted := &Reverted{}
	err := l.locked(ctx, func(s *session) error { return s.revertKept(reverted, names) })
	if err == nil {
		err = reverted.drift()
	}
	return reverted, err
}

// Recover reverts for every launch of which alive says no, and finishes what a
// crash cut short; a file that drifted and has our patched bytes again is brought
// back, under no launch's name. alive is asked under the ledger's lock and must not call the
// ledger. It should hold a launch for alive as long as any process of its server
// tree is, even where the owner itself is gone.
func (l *Ledger) Recover(ctx context.Context, alive func(Owner) bool) ([]Reverted, error) {
	var all []Reverted
	err := l.locked(ctx, func(s *session) error {
		var errs []error
		for _, launch := range s.book.launches() {
			if alive(s.book.Leases[launch].Owner) {
				continue
			}
			reverted := Reverted{Launch: launch}
			errs = append(errs, s.revert(launch, &reverted))
			all = append(all, reverted)
		}
		var returned Reverted
		errs = append(errs, s.restoreAll(s.book.returned(), &returned), s.forgive())
		if len(returned.Restored) > 0 {
			all = append(all, returned)
		}
		return errors.Join(errs...)
	})
	for _, r := range all {
		err = errors.Join(err, r.drift())
	}
	return all, err
}

func (b *book) launches() []string {
	var all []string
	for name := range b.Leases {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (s *session) revert(launch string, r *Reverted) error {
	lease := s.book.Leases[launch]
	if lease == nil {
		return nil
	}
	due := s.due(lease, r)
	if err := s.restoreAll(due, r); err != nil {
		return err
	}
	if lease.Overlay != "" {
		if err := s.discard(s.path(overlaysName, lease.Overlay)); err != nil {
			return err
		}
	}
	return s.journal.add(record{Kind: recReleased, Time: s.now(), Launch: launch})
}

// due lists what a launch's end brings back.
func (s *session) due(l *lease, r *Reverted) []*entry {
	var due []*entry
	for _, path := range l.Paths {
		e := s.book.Entries[path]
		switch {
		case e == nil: // drifted before, or restored by an earlier try
		case len(s.book.holders(path)) > 1:
			r.Leased = append(r.Leased, path)
		case e.Keep && l.Done:
			r.Kept = append(r.Kept, path)
		default:
			due = append(due, e)
		}
	}
	return due
}

func (s *session) revertKept(r *Reverted, names selection) error {
	if err := names.check(s.book); err != nil {
		return err
	}
	var due []*entry
	for path, e := range s.book.Entries {
		if !names.means(path, e.Patches) {
			continue
		}
		if len(s.book.holders(path)) == 0 {
			due = append(due, e)
		} else if e.Keep || len(names) > 0 {
			r.Leased = append(r.Leased, path)
		}
	}
	for _, e := range s.book.returned() {
		if names.means(e.Path, e.Patches) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *entry) int { return strings.Compare(a.Path, b.Path) })
	if err := s.tryAll(due, r); err != nil {
		return err
	}
	// What drifted stays the person's to revert: it is an entry as before.
	done := slices.DeleteFunc(due, func(e *entry) bool { return slices.Contains(r.Drifted, e.Path) })
	if err := errors.Join(s.record(done, r), s.forgive()); err != nil {
		return err
	}
	for _, path := range s.book.drifted() {
		if d := s.book.Drifts[path]; !slices.Contains(r.Drifted, path) && names.means(path, d.patches()) {
			s.drifted(r, path, d.Before)
		}
	}
	return nil
}

// restoreAll brings back what can be and closes all entries, those of drifted
// files too: no launch will ask for them again.
func (s *session) restoreAll(due []*entry, r *Reverted) error {
	if err := s.tryAll(due, r); err != nil {
		return err
	}
	return s.record(due, r)
}

// tryAll brings back what can be, goes on past failures, and then gives the
// folders their times.
func (s *session) tryAll(due []*entry, r *Reverted) error {
	var errs []error
	var folders []string
	for _, e := range due {
		folders = append(folders, e.Lock)
	}
	if err := s.lockFolders(folders, ""); err != nil {
		return err
	}
	times := foundTimes(due)
	for _, e := range due {
		if err := s.restoreOne(e, r); err != nil {
			errs = append(errs, fmt.Errorf("cannot restore %s: %w", e.Path, err))
		}
	}
	return errors.Join(append(errs, s.settleFolders(due, times))...)
}

// record closes the entries once all of the set, folders included, is done: a
// crash before it only means that the work is looked over again.
func (s *session) record(due []*entry, r *Reverted) error {
	for _, e := range due {
		rec := record{Kind: recRestored, Time: s.now(), Path: e.Path}
		if slices.Contains(r.Drifted, e.Path) {
			rec.Kind = recDrifted
		}
		if err := s.journal.add(rec); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) restoreOne(e *entry, r *Reverted) error {
	found, err := s.restore(e)
	if err != nil {
		return err
	}
	switch found {
	case wasPatched:
		r.Restored = append(r.Restored, e.Path)
	case wasClean:
		r.Clean = append(r.Clean, e.Path)
	case wasDrifted:
		s.drifted(r, e.Path, e.Before)
	}
	return nil
}

func (s *session) drifted(r *Reverted, path, before string) {
	r.Drifted = append(r.Drifted, path)
	if r.Originals == nil {
		r.Originals = map[string]string{}
	}
	r.Originals[path] = s.path(originalsName, before)
}

// settle closes one entry that nobody holds, before its path is used anew.
func (s *session) settle(e *entry) error {
	var r Reverted
	return s.restoreAll([]*entry{e}, &r)
}
