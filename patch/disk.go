package patch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// disk is every way in which this package changes a file system, one system
// call a method, so that a test can make each of them fail or be the last.
type disk interface {
	Create(path string) (handle, error) // must not exist; 0600, for us alone
	Append(path string) (handle, error) // made where it is absent
	Truncate(path string, size int64) error
	Mkdir(path string) error
	Link(from, to string) error // the link itself where from is symbolic
	Symlink(target, path string) error
	Rename(from, to string) error
	Remove(path string) error
	Chown(path string, uid, gid uint32) error
	Chmod(path string, mode uint32) error
	SetAttr(path, name string, value []byte) error
	SetTime(path string, mtime int64) error
	Sync(dir string) error // the names in a folder
}

// handle is an open file of a disk.
type handle interface {
	io.Writer
	Sync() error
	Close() error
}

type osDisk struct{}

func (osDisk) Create(path string) (handle, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
}

func (osDisk) Append(path string) (handle, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
}

func (osDisk) Truncate(path string, size int64) error { return os.Truncate(path, size) }
func (osDisk) Mkdir(path string) error                { return os.Mkdir(path, 0o700) }
func (osDisk) Symlink(target, path string) error      { return os.Symlink(target, path) }
func (osDisk) Rename(from, to string) error           { return os.Rename(from, to) }
func (osDisk) Remove(path string) error               { return os.Remove(path) }

func (osDisk) Link(from, to string) error {
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, 0); err != nil {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: err}
	}
	return nil
}

func (osDisk) Chown(path string, uid, gid uint32) error {
	return os.Lchown(path, int(uid), int(gid))
}

func (osDisk) Chmod(path string, mode uint32) error {
	return pathError("chmod", path, unix.Chmod(path, mode))
}

func (osDisk) SetAttr(path, name string, value []byte) error {
	return pathError("setxattr "+name, path, unix.Lsetxattr(path, name, value, 0))
}

func (osDisk) SetTime(path string, mtime int64) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	return pathError("utimensat", path, unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW))
}

func (osDisk) Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // a file system that has no durable names to offer
	}
	return err
}

func pathError(op, path string, err error) error {
	if err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// write makes a new file with content and inode, and waits until it is durable.
// A failure leaves nothing behind.
func write(d disk, path string, content []byte, node inode) error {
	if node.Link != "" {
		return writeLink(d, path, node)
	}
	f, err := d.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = dress(d, path, node)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return errors.Join(err, d.Remove(path))
	}
	return nil
}

func writeLink(d disk, path string, node inode) error {
	if err := d.Symlink(node.Link, path); err != nil {
		return err
	}
	err := d.Chown(path, node.UID, node.GID)
	if err == nil {
		err = d.SetTime(path, node.ModTime)
	}
	if err != nil {
		return errors.Join(err, d.Remove(path))
	}
	return nil
}

// dress gives a new file its owner, attributes, mode and time. Owner first: it
// clears the setuid bits; the time last: all else moves it.
func dress(d disk, path string, node inode) error {
	if err := d.Chown(path, node.UID, node.GID); err != nil {
		return err
	}
	names := make([]string, 0, len(node.Attrs))
	for name := range node.Attrs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		// A label is the policy's to give: where we may not set it, the folder's
		// default is what the policy wants.
		if err := d.SetAttr(path, name, node.Attrs[name]); err != nil && !strings.HasPrefix(name, "security.") {
			return err
		}
	}
	if err := d.Chmod(path, node.Mode); err != nil {
		return err
	}
	return d.SetTime(path, node.ModTime)
}

// removeIfThere removes a name; one that is gone already is as good.
func removeIfThere(d disk, path string) error {
	err := d.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// tempPrefix marks our files beside a target. They live for milliseconds, or
// until the next recovery.
const tempPrefix = ".sglaunch-"

func tempBeside(path, tag string) string {
	return filepath.Join(filepath.Dir(path), tempPrefix+tag)
}
