package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"sglaunch/internal/proc"
)

// digestOf is a picture of an installed package: names, contents, modes, owners
// and times. After a launch it must be the same.
func digestOf(site string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(site, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "__pycache__" {
			return fs.SkipDir // Python's own, written by every run
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte(nil)
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		stamp := info.ModTime().UnixNano()
		if d.IsDir() {
			stamp = 0 // __pycache__ may come and go in it
		}
		owner := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&b, "%s %v %d:%d %d %x\n", path, info.Mode(), owner.Uid, owner.Gid, stamp, sha256.Sum256(content))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cannot look at the stage: %w", err)
	}
	return b.String(), nil
}

// verify looks, independently of what sglaunch says, at what is left.
func (r *rehearsalRun) verify(before string, code int) error {
	after, err := digestOf(r.stage.Site)
	if err != nil {
		return err
	}
	if after != before {
		return errors.New("the installed package is not what it was before the rehearsal")
	}
	left, err := proc.WithMarker("SGLAUNCH_REHEARSAL_STATE=" + r.stage.State)
	if err != nil {
		return fmt.Errorf("cannot look for processes: %w", err)
	}
	var ours []string
	for _, p := range left {
		if p.PID != os.Getpid() {
			ours = append(ours, fmt.Sprintf("%d %s", p.PID, p.Comm))
		}
	}
	if len(ours) > 0 {
		return fmt.Errorf("processes of the rehearsal are left: %s", strings.Join(ours, ", "))
	}
	r.say("sglaunch ended with exit code %d; no process is left; the patched file is what it was", code)
	if r.keep != "" {
		r.say("records: %s", filepath.Join(r.dir, "state", "launches"))
	}
	if code != exitOK {
		return quietExit(code)
	}
	return nil
}
