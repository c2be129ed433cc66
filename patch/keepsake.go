package patch

import (
	"fmt"
	"maps"
)

// A keepsake is what undoes one launch, in the memory of the process that applied
// its patches: somebody may remove the state directory while the server runs, and
// nothing else remembers the originals then.
type keepsake struct {
	applied  record            // as the journal had it, with the entries of every file
	contents map[string][]byte // originals, of bytecode too, by hash
}

// remember keeps what the journal and the originals hold for a launch now. What
// cannot be read is not kept: the ledger is there, and has the last word anyway.
func (s *session) remember(launch string) {
	lease := s.book.Leases[launch]
	k := &keepsake{contents: map[string][]byte{}}
	k.applied = record{Kind: recApply, Owner: &lease.Owner, Paths: lease.Paths, Overlay: lease.Overlay, Copied: lease.Copied}
	for _, path := range lease.Paths {
		e := s.book.entry(path)
		if e == nil {
			continue
		}
		k.applied.Entries = append(k.applied.Entries, e)
		for _, sum := range e.sums() {
			if content, err := s.original(sum); err == nil {
				k.contents[sum] = content
			}
		}
	}
	s.keepsakes.Store(launch, k)
}

// sums are the hashes of all that a revert of the entry may need.
func (e *entry) sums() []string {
	sums := []string{e.Before}
	for _, p := range e.Pycs {
		sums = append(sums, p.Sum)
	}
	return sums
}

// remind writes down anew what this process applied for a launch of which the
// journal knows nothing any more, so that a revert finds all that it needs.
func (s *session) remind(launch string) error {
	kept, ok := s.keepsakes.Load(launch)
	if !ok || s.book.Leases[launch] != nil {
		return nil
	}
	k := kept.(*keepsake)
	for _, e := range k.applied.Entries {
		if s.book.entry(e.Path) != nil {
			return fmt.Errorf("cannot restore %s: its record was removed while it was patched, and another launch has patched it since", e.Path)
		}
	}
	for content := range maps.Values(k.contents) {
		if err := s.keep(content); err != nil {
			return err
		}
	}
	again := k.applied
	again.Time = s.now()
	if err := s.journal.add(again); err != nil {
		return err
	}
	return s.journal.add(record{Kind: recApplied, Time: s.now(), Launch: launch})
}
