package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// note is what is left for whoever has to end the container.
type note struct {
	Client []string `json:"client"`
	IDFile string   `json:"cidfile"`
	Dir    string   `json:"dir"`
	Remove bool     `json:"remove"`
}

func notePath(folder string) string { return filepath.Join(folder, "container.json") }

// Note leaves in a folder how the container is ended; dir is where the client
// was started.
func (r Run) Note(folder, file, dir string) error {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	data, err := json.Marshal(note{Client: r.Client, IDFile: file, Dir: dir, Remove: r.Remove})
	if err != nil {
		return fmt.Errorf("cannot note the container: %w", err)
	}
	if err := os.WriteFile(notePath(folder), data, 0o600); err != nil {
		return fmt.Errorf("cannot note the container: %w", err)
	}
	return nil
}

// Pauses and limits of asking a client.
const (
	askLimit = 15 * time.Second // for one answer of a client
	askPause = 200 * time.Millisecond
)

// End ends the container that a folder knows of, and returns when its engine says
// that it does not run. It does nothing where there is none. The error says what
// is known of one that would not go.
func End(ctx context.Context, folder string) error {
	data, err := os.ReadFile(notePath(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var n note
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err != nil {
		return fmt.Errorf("cannot end the container: its note cannot be read: %w", err)
	}
	text, err := os.ReadFile(n.IDFile)
	id := strings.TrimSpace(string(text))
	if errors.Is(err, fs.ErrNotExist) || err == nil && id == "" {
		return nil // it was never made
	}
	if err != nil {
		return fmt.Errorf("cannot end the container: %w", err)
	}
	if err := n.end(ctx, id); err != nil {
		return err
	}
	if n.Remove { // a client that was killed cannot, and the next attempt may want the name
		_, _ = n.ask(ctx, "rm", "--force", id) // mostly it is gone already, which docker calls an error
	}
	return nil
}

// end kills until the container does not run.
func (n note) end(ctx context.Context, id string) error {
	for {
		running, err := n.running(ctx, id)
		if err == nil && !running {
			return nil
		}
		if err == nil {
			_, err = n.ask(ctx, "kill", id)
			if again, asked := n.running(ctx, id); asked == nil && !again {
				return nil // it went by itself, meanwhile
			}
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("cannot end the container %.12s: %w", id, err)
		case <-time.After(askPause):
		}
	}
}

// running asks whether the container runs; one that its engine does not know does
// not.
func (n note) running(ctx context.Context, id string) (bool, error) {
	out, err := n.ask(ctx, "ps", "--quiet", "--no-trunc", "--filter", "id="+id)
	return strings.Contains(out, id), err
}

// ask runs the client with other words, in a process group of its own.
func (n note) ask(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	argv := append(append([]string(nil), n.Client...), words...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = n.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return string(out), nil
}
