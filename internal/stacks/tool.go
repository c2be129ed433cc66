package stacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sglaunch/internal/visible"

	"golang.org/x/sys/unix"
)

// outputLimit bounds what a tool may print; a rank has some hundred threads.
const outputLimit = 4 << 20

// reapLimit is how long a tool that was killed may hold its output open.
const reapLimit = 200 * time.Millisecond

// Find looks a tool up in folders, in their order, then on sglaunch's own PATH.
// It returns "" where there is none.
func Find(name string, folders ...string) string {
	for _, dir := range folders {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	if found, err := exec.LookPath(name); err == nil && filepath.IsAbs(found) {
		return found
	}
	return ""
}

// run starts a tool in a process group of its own and gives back what it
// printed. When ctx ends, the whole group is killed.
func run(ctx context.Context, argv []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bounded
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = reapLimit
	err := cmd.Run()
	name := filepath.Base(argv[0])
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer in time", name)
	case errors.As(err, new(*exec.ExitError)):
		return nil, fmt.Errorf("%s: %s", name, complaint(errs.Bytes()))
	case err != nil:
		return nil, fmt.Errorf("cannot run %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// complaint is the line of a tool's standard error that says why it failed:
// py-spy adds a backtrace of its own, gdb what followed from it.
func complaint(text []byte) string {
	best := "it failed and did not say why"
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		line = visible.Clip(strings.TrimSpace(line), 200)
		lower := strings.ToLower(line)
		if strings.Contains(lower, "ptrace") || strings.Contains(lower, "error") || strings.Contains(lower, "denied") {
			return line
		}
		if line != "" && strings.HasPrefix(best, "it failed") {
			best = line
		}
	}
	return best
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := outputLimit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
