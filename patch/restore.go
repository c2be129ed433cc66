package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// How one file becomes what it was.

// outcome is what was found and done for one entry.
type outcome int

const (
	wasPatched outcome = iota
	wasClean
	wasDrifted
)

// restore brings one file back. The content found decides, never the journal
// alone: what is neither our patched file nor the original is not ours to touch.
func (s *session) restore(e *entry) (outcome, error) {
	if err := removeIfThere(s.disk, e.Temp); err != nil {
		return 0, err
	}
	now, err := readFile(e.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wasDrifted, nil // uninstalled: nothing of ours is left there
	case err != nil:
		return 0, err
	case now.sum == e.After && now.Link == "":
		return wasPatched, s.putBack(e)
	case now.sum == e.Before && now.inode.same(e.Node):
		return wasClean, s.restoreBytecode(e)
	case now.sum == e.Before:
		return wasClean, nil // installed anew, with bytecode of its own
	}
	return wasDrifted, nil
}

func (s *session) putBack(e *entry) error {
	if err := s.removeBytecode(e); err != nil {
		return err
	}
	if err := s.bringBack(e.Path, e.Before, e.Link, e.Temp, e.Node); err != nil {
		return err
	}
	now, err := readFile(e.Path)
	if err != nil {
		return err
	}
	sameText := now.sum == e.Before || e.Node.Link != "" // what a link leads to is not ours
	if !sameText || !now.inode.same(e.Node) {
		return errors.New("the restored file is not what it was")
	}
	return s.restoreBytecode(e)
}

// bringBack renames the original over a path: the saved hard link where it is
// still the original, else a copy.
func (s *session) bringBack(path, sum, link, temp string, node inode) error {
	from := temp
	if s.intact(link, sum, node) {
		from = s.path(linksName, link)
	} else if err := s.copyTo(temp, sum, node); err != nil {
		return err
	}
	if err := s.disk.Rename(from, path); err != nil {
		return errors.Join(err, removeIfThere(s.disk, temp))
	}
	return s.disk.Sync(filepath.Dir(path))
}

// intact tells whether a saved hard link is still what was saved: somebody may
// have written through another link of the same inode.
func (s *session) intact(link, sum string, node inode) bool {
	if link == "" {
		return false
	}
	path := s.path(linksName, link)
	now, err := readInode(path)
	if err != nil || !now.same(node) {
		return false
	}
	if node.Link != "" {
		return true // what it leads to is not ours
	}
	content, err := readBounded(path)
	return err == nil && Hash(content) == sum
}

func (s *session) copyTo(temp, sum string, node inode) error {
	var content []byte
	if node.Link == "" {
		var err error
		if content, err = s.original(sum); err != nil {
			return err
		}
	}
	return write(s.disk, temp, content, node)
}

// removeBytecode takes away what the interpreter compiled from the patched
// file: another whole second keeps it from being used, but not from lying there.
func (s *session) removeBytecode(e *entry) error {
	pycs, err := bytecode(e.Path, e.Caches)
	if err != nil {
		return err
	}
	for _, pyc := range pycs {
		if err := removeIfThere(s.disk, pyc); err != nil && pycKind(pyc) != "timestamp" {
			return err
		}
	}
	return nil
}

// restoreBytecode puts the saved bytecode back where the file is the original
// with its time, so that it is valid again.
func (s *session) restoreBytecode(e *entry) error {
	for i, p := range e.Pycs {
		now, err := readFile(p.Path)
		if err == nil && now.sum == p.Sum && now.inode.same(p.Node) {
			continue
		}
		temp := tempBeside(p.Path, fmt.Sprintf("%s-%d", strings.TrimPrefix(filepath.Base(e.Temp), tempPrefix), i))
		if err := removeIfThere(s.disk, temp); err != nil {
			return err
		}
		if err := s.bringBack(p.Path, p.Sum, p.Link, temp, p.Node); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
