// Package trust decides whether a file may tell sglaunch what to do.
//
// What configuration says is executed: commands, hooks, patches of Python
// source. Run as root, sglaunch therefore reads only files that nobody else
// may change. Anybody else runs with their own rights and may read what they
// like.
package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sglaunch/internal/plain"
)

// ErrUntrusted is in the chain of each refusal of this package.
var ErrUntrusted = errors.New("others may change it")

const maxLinks = 40 // as the kernel

// Check refuses, for root only, a file that others may write, or that is
// reached through a symbolic link of somebody else. It follows every link on
// the way, so a Kubernetes ConfigMap (links and files of root) passes.
//
// Folders are not looked at: who may write a folder can put files of their own
// there, and those are refused by their owner.
func Check(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	resolved, err := resolve(path)
	if err != nil {
		return err
	}
	info, err := os.Lstat(resolved)
	if err != nil {
		return plain.Error(err)
	}
	return checkFile(info)
}

// Read returns the content of a trusted regular file of at most limit bytes.
// It never waits: a pipe or a device is refused, not opened.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, plain.Error(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if err := Check(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain.Error(err)
	}
	defer f.Close()
	if err := checkOpen(f); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, plain.Error(err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return content, nil
}

// checkOpen looks at the file that is open, which need not be the one that the
// path named a moment ago.
func checkOpen(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return plain.Error(err)
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	case os.Geteuid() != 0:
		return nil
	}
	return checkFile(info)
}

// resolve follows every symbolic link in path and refuses links that belong to
// others.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", plain.Error(err)
	}
	at, rest := "/", abs
	for links := 0; rest != ""; {
		var step string
		step, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		next := filepath.Join(at, step) // also goes up for ".."
		info, err := os.Lstat(next)
		if err != nil {
			return "", plain.Error(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("too many levels of symbolic links")
		}
		if err := checkOwner(info); err != nil {
			return "", fmt.Errorf("the link %q: %w", next, err)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", plain.Error(err)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = target + "/" + rest
	}
	return at, nil
}

func checkFile(info fs.FileInfo) error {
	if err := checkOwner(info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%w: its mode is %04o", ErrUntrusted, info.Mode().Perm())
	}
	return nil
}

func checkOwner(info fs.FileInfo) error {
	owner := info.Sys().(*syscall.Stat_t).Uid
	if owner != 0 && owner != uint32(os.Geteuid()) {
		return fmt.Errorf("%w: it belongs to user %d", ErrUntrusted, owner)
	}
	return nil
}
