package patch

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"time"
)

// uncommitted tells whether a file is tracked in a git work tree and differs
// from what is committed. It is a courtesy to people who work in that tree:
// where git is not there, or does not answer, nothing is known.
func uncommitted(ctx context.Context, path string) bool {
	if !inCheckout(filepath.Dir(path)) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	// The tree's own settings must not start programs for this.
	cmd := exec.CommandContext(ctx, "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", filepath.Dir(path),
		"status", "--porcelain", "--untracked-files=no", "--", filepath.Base(path))
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return err == nil && len(bytes.TrimSpace(out)) > 0
}

func inCheckout(dir string) bool {
	for {
		if isFile(filepath.Join(dir, ".git", "HEAD")) || isFile(filepath.Join(dir, ".git")) {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
