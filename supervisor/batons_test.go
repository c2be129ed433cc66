package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sglaunch/internal/eventually"
)

// compile starts a Python process that holds a baton as torch does.
func compile(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	cmd := exec.Command("python3", "-c", fmt.Sprintf("import os, time; os.open(%q, os.O_CREAT | os.O_EXCL); print(flush=True); time.sleep(1000)", path))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_, err = out.Read(make([]byte, 1))
	must(t, err)
	return cmd
}

// What the attempt was seen to hold is removed when it has ended; what others
// hold, or left behind earlier, is not touched.
func TestBatons(t *testing.T) {
	dir := t.TempDir()
	ours, others, old := filepath.Join(dir, "a/lock"), filepath.Join(dir, "b/lock"), filepath.Join(dir, "c/lock")
	mine, other := compile(t, ours), compile(t, others)
	_ = compile(t, old).Process.Kill()
	b := &batons{}
	b.begin([]string{dir})
	b.look(context.Background(), []int{mine.Process.Pid})
	eventually.True(t, "the baton to be seen", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.seen) > 0 })
	must(t, mine.Process.Kill())
	_ = mine.Wait()
	done := b.clear(context.Background())
	if len(done) != 1 || !strings.Contains(done[0], ours) || !strings.HasPrefix(done[0], "removed") {
		t.Errorf("done: %q", done)
	}
	for path, stands := range map[string]bool{ours: false, others: true, old: true} {
		if _, err := os.Stat(path); (err == nil) != stands {
			t.Errorf("%s: %v", path, err)
		}
	}
	if done := b.clear(context.Background()); done != nil {
		t.Errorf("a second time: %q", done)
	}
	_ = other.Process.Kill()
}
