package patch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// newEntry keeps the original: its content by hash, which is all that a copy
// needs, and where the file system permits a hard link, with which a revert
// brings back the very inode.
func (s *session) newEntry(c *content, n int) (*entry, error) {
	path := c.place.path
	tag := fmt.Sprintf("%s-%d", Hash([]byte(path + s.now().String()))[:12], n)
	e := &entry{
		Path: path, Lock: c.place.lock, Before: c.disk.sum, After: Hash(c.working), Node: c.disk.inode,
		Written: s.newTime(path, c.disk.ModTime), Temp: tempBeside(path, tag),
		Caches: cacheDirs(c.place.caches), Keep: c.keep, Patches: c.patches, Module: c.module,
	}
	var err error
	if e.Folders, err = foldersOf(e); err != nil {
		return nil, err
	}
	if err := s.keep(c.disk.content); err != nil {
		return nil, err
	}
	if e.Link, err = s.link(path, tag); err != nil {
		return nil, err
	}
	pycs, err := bytecode(path, e.Caches)
	if err != nil {
		return nil, err
	}
	for i, pyc := range pycs {
		kept, err := s.savePyc(pyc, fmt.Sprintf("%s-pyc%d", tag, i))
		if err != nil {
			return nil, err
		}
		e.Pycs = append(e.Pycs, kept)
	}
	return e, s.disk.Sync(s.path(linksName))
}

func (s *session) savePyc(path, tag string) (saved, error) {
	f, err := readFile(path)
	if err != nil {
		return saved{}, err
	}
	if err := s.keep(f.content); err != nil {
		return saved{}, err
	}
	link, err := s.link(path, tag)
	return saved{Path: path, Sum: f.sum, Node: f.inode, Link: link}, err
}

// keep stores a content under its hash, durably.
func (s *session) keep(content []byte) error {
	sum := Hash(content)
	if _, err := s.original(sum); err == nil {
		return nil
	}
	return s.store(s.path(originalsName, sum), content)
}

// store writes a file of the ledger's own, durably, over what a crash left.
func (s *session) store(final string, content []byte) error {
	for _, name := range []string{final, final + ".new"} { // a torn one from a crash
		if err := removeIfThere(s.disk, name); err != nil {
			return err
		}
	}
	node := inode{Mode: 0o600, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), ModTime: s.now().UnixNano()}
	if err := write(s.disk, final+".new", content, node); err != nil {
		return err
	}
	if err := s.disk.Rename(final+".new", final); err != nil {
		return err
	}
	return s.disk.Sync(filepath.Dir(final))
}

// link puts a hard link of a file into the ledger, and returns its name, or ""
// where the file system or its policy has none for us.
func (s *session) link(path, name string) (string, error) {
	err := s.disk.Link(path, s.path(linksName, name))
	for _, no := range []error{unix.EXDEV, unix.EPERM, unix.EACCES, unix.EMLINK, unix.EOPNOTSUPP, unix.ENOSYS} {
		if errors.Is(err, no) {
			return "", nil
		}
	}
	return name, err
}

// newTime is a modification time for a patched file in a whole second that no
// version of it has had: bytecode compares no more than that, and the size.
func (s *session) newTime(path string, original int64) int64 {
	second := max(s.now().Unix(), original/int64(time.Second)+1, s.book.Used[path]+1)
	return second * int64(time.Second)
}

// original returns the content kept under a hash, after checking that it still
// has it.
func (l *Ledger) original(sum string) ([]byte, error) {
	if !hashForm.MatchString(sum) {
		return nil, fmt.Errorf("%q is not a hash", sum)
	}
	content, err := readBounded(l.path(originalsName, sum))
	if err != nil {
		return nil, err
	}
	if Hash(content) != sum {
		return nil, fmt.Errorf("the original kept in %s has changed", l.path(originalsName, sum))
	}
	return content, nil
}
