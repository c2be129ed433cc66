package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Applied is what Apply did.
type Applied struct {
	Launch string   `json:"launch"`
	Files  []string `json:"files,omitempty"`  // that hold the patch from now on
	Shared []string `json:"shared,omitempty"` // those of them that held it before: another launch put it there
	Env    []string `json:"env,omitempty"`    // NAME=value, to be added to the server's environment (overlay)
}

// Apply puts the plan on disk for one launch: every file of it, or, on any
// error, none. Files are as the plan found them or Apply fails with ErrChanged.
// It fails with ErrRefused where the plan refuses a patch whose on_refused is
// abort, and with ErrLeased where another launch holds a different patch. A
// launch that applies again what it has applied changes nothing.
func (l *Ledger) Apply(ctx context.Context, p *Plan, owner Owner) (*Applied, error) {
	if owner.Launch == "" {
		return nil, errors.New("cannot apply patches: the owner has no launch")
	}
	if err := p.refusal(); err != nil {
		return nil, err
	}
	applied := &Applied{Launch: owner.Launch}
	if len(p.files) == 0 {
		return applied, nil
	}
	err := l.locked(ctx, func(s *session) error { return s.apply(p, owner, applied) })
	if err != nil {
		return nil, err
	}
	return applied, nil
}

func (p *Plan) refusal() error {
	var why []string
	for _, t := range p.Refused() {
		if t.OnRefused != RefusedUnpatched {
			why = append(why, fmt.Sprintf("%s: %s (%s)", t.Patch, t.Reason, t.State))
		}
	}
	if len(why) == 0 {
		return nil
	}
	return fmt.Errorf("cannot apply patches: %s: %w", strings.Join(why, "; "), ErrRefused)
}

func (s *session) apply(p *Plan, owner Owner, applied *Applied) error {
	if err := s.lockPlaces(p); err != nil {
		return err
	}
	entries, paths, err := s.prepare(p, owner, applied)
	if err != nil {
		return err
	}
	overlay, copied, err := s.prepareOverlay(p, owner, applied)
	if err != nil {
		return err
	}
	if err := s.journal.add(record{Kind: recApply, Time: s.now(), Owner: &owner, Entries: entries, Paths: s.merged(owner, paths), Overlay: overlay, Copied: copied}); err != nil {
		return err
	}
	err = s.write(p, entries)
	if err == nil {
		err = errors.Join(s.verify(p), s.verifyOverlay(p, applied))
	}
	if err == nil {
		err = s.journal.add(record{Kind: recApplied, Time: s.now(), Launch: owner.Launch})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot apply patches: %w", err), s.rollBack(owner))
	}
	s.remember(owner.Launch)
	return nil
}

// merged adds what a launch holds already to what it needs now.
func (s *session) merged(owner Owner, paths []string) []string {
	if l := s.book.Leases[owner.Launch]; l != nil {
		paths = append(slices.Clone(l.Paths), paths...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// lockPlaces guards the folders that hold the packages against other ledgers,
// and the environment against uv, which locks it while it installs.
func (s *session) lockPlaces(p *Plan) error {
	var folders []string
	for _, c := range p.files {
		if c.method == MethodFile {
			folders = append(folders, c.place.lock)
		}
	}
	return s.lockFolders(folders, p.prefix)
}

func (s *session) lockFolders(folders []string, prefix string) error {
	slices.Sort(folders) // one order everywhere: no two sessions wait for each other
	for _, dir := range slices.Compact(folders) {
		err := s.lock(dir, os.O_RDONLY)
		if unlockable(err) {
			continue
		}
		if err != nil {
			return err
		}
	}
	if uv := filepath.Join(prefix, ".lock"); prefix != "" && isFile(uv) {
		return s.lock(uv, os.O_RDONLY)
	}
	return nil
}

// unlockable tells that a folder is gone, or on a network file system that has
// no locks for folders. The ledger's own lock still holds.
func unlockable(err error) bool {
	for _, no := range []error{fs.ErrNotExist, unix.EBADF, unix.ENOLCK, unix.EOPNOTSUPP, unix.ENOTDIR} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// prepare checks every precondition and puts the originals aside. Nothing
// outside the ledger changes.
func (s *session) prepare(p *Plan, owner Owner, applied *Applied) (entries []*entry, paths []string, err error) {
	for _, c := range p.files {
		if c.method != MethodFile {
			continue
		}
		path := c.place.path
		paths = append(paths, path)
		applied.Files = append(applied.Files, path)
		shared, err := s.claim(c, owner)
		if err != nil {
			return nil, nil, err
		}
		if shared {
			applied.Shared = append(applied.Shared, path)
			continue
		}
		e, err := s.newEntry(c, len(entries))
		if err != nil {
			return nil, nil, fmt.Errorf("cannot keep the original of %s: %w", path, err)
		}
		entries = append(entries, e)
	}
	return entries, paths, nil
}

// claim compares a file with the plan. shared means that it holds just what the
// plan wants, put there for another launch.
func (s *session) claim(c *content, owner Owner) (shared bool, err error) {
	path := c.place.path
	now, err := readFile(path)
	if err != nil {
		return false, fmt.Errorf("cannot apply to %s: %w: %w", path, ErrChanged, err)
	}
	held := s.book.entry(path)
	if other := s.book.copier(path, owner.Launch); other != "" && now.sum != Hash(c.working) {
		return false, fmt.Errorf("cannot apply to %s: %w: %s imports a copy of it; method = %q goes with that", path, ErrLeased, other, MethodOverlay)
	}
	switch {
	case held != nil && now.sum == held.After && held.After == Hash(c.working):
		return true, nil
	case held != nil && now.sum == held.After:
		return false, fmt.Errorf("cannot apply to %s: %w: %s", path, ErrLeased, held.holders(s.book))
	case now.sum != c.disk.sum || !now.same(c.disk.inode):
		return false, fmt.Errorf("cannot apply to %s: %w", path, ErrChanged)
	case held != nil: // left by a crash, or overtaken by an upgrade
		return false, s.settle(held)
	}
	return false, nil
}

// write puts the files in place: all of them made and durable first, then their
// bytecode away, then one rename each.
func (s *session) write(p *Plan, entries []*entry) error {
	for _, e := range entries {
		node := e.Node
		node.ModTime, node.Link = e.Written, ""
		if e.Node.Link != "" {
			node.Mode = 0o644 // what is written is a file, not a link with its 0777
			if led, err := os.Stat(e.Path); err == nil {
				node.Mode = uint32(led.Mode().Perm())
			}
		}
		if err := write(s.disk, e.Temp, p.file(e.Path).working, node); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := s.swap(e); err != nil {
			return err
		}
	}
	return s.restoreFolders(entries)
}

func (s *session) swap(e *entry) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if now, err := readFile(e.Path); err != nil || now.sum != e.Before {
		return fmt.Errorf("%s: %w", e.Path, ErrChanged)
	}
	for _, pyc := range e.Pycs {
		if err := removeIfThere(s.disk, pyc.Path); err != nil && pycKind(pyc.Path) != "timestamp" {
			return err // the other kinds would hide the change; a timestamp one cannot
		}
	}
	if err := s.disk.Rename(e.Temp, e.Path); err != nil {
		return err
	}
	return s.disk.Sync(filepath.Dir(e.Path))
}

func (p *Plan) file(path string) *content {
	for _, c := range p.files {
		if c.place.path == path {
			return c
		}
	}
	return nil
}

// verify reads back what the interpreter would read: through the path that it
// resolves now, not the one of the plan.
func (s *session) verify(p *Plan) error {
	var q question
	for _, c := range p.files {
		top, _, _ := strings.Cut(c.module, ".")
		q.add(&q.Packages, top)
		q.add(&q.Modules, c.module)
	}
	where, err := s.ask(s.ctx, p.Interpreter, q)
	if err != nil {
		return err
	}
	for _, c := range p.files {
		if c.method != MethodFile {
			continue
		}
		path := c.place.path
		if c.module != "" {
			found, err := where.find(c.module)
			if err != nil {
				return fmt.Errorf("%s is not found any more: %w", c.module, err)
			}
			path = found.path
		}
		now, err := readBounded(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, c.working) {
			return fmt.Errorf("%s does not hold the patch after it was written", path)
		}
	}
	return nil
}

// rollBack undoes a half-done apply. Where that fails too, the journal still
// says what is to be done, and Recover does it.
func (s *session) rollBack(owner Owner) error {
	s.ctx = context.WithoutCancel(s.ctx)
	reverted := &Reverted{Launch: owner.Launch}
	if err := s.revert(owner.Launch, reverted); err != nil {
		return fmt.Errorf("cannot roll back, the next recovery will: %w", err)
	}
	return nil
}
