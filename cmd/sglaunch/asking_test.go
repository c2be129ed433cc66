package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is some user who is not root.
const nobody = 65534

// Root asks and stops the launch of another user, and leaves nothing of root's
// among his files. Without root a user asks for himself.
func TestRootAsksForAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, owner := self, os.Geteuid()
	var user *syscall.Credential
	if owner == 0 {
		owner, user = nobody, &syscall.Credential{Uid: nobody, Gid: nobody}
		program = filepath.Join(dir, "sglaunch") // the test's own may lie where only root reads
		if err := errors.Join(os.WriteFile(program, readFile(t, self), 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	s := standing{startAs(t, user, program, dir, nil, "run", "--server.name=theirs", "--", "sh", "-c", "echo alive; exec sleep 1000"), dir}
	s.await("server is process")
	for _, words := range []string{"status", "status theirs --json", "history", "restart"} {
		code, out, errout := s.sglaunch(strings.Fields(words)...)
		if code != exitOK || !strings.Contains(out, "theirs") {
			t.Errorf("%s: exit code %d\n%s%s", words, code, out, errout)
		}
	}
	s.await("attempt 2")
	if code, out, errout := s.sglaunch("stop", "--wait"); code != exitOK || !strings.Contains(out, "theirs: ") {
		t.Errorf("stop: exit code %d\n%s%s", code, out, errout)
	}
	if code := s.wait(); code != exitOK {
		t.Errorf("it ended with %d\n%s", code, s.stderr.bytes())
	}
	err = filepath.WalkDir(filepath.Join(dir, "state"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != uint32(owner) {
			t.Errorf("%s belongs to %d", path, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
