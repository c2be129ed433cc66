package statedir

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is being written touches no folder but its own.
func TestReplaceKeepsOutOfSharedFolders(t *testing.T) {
	dir := t.TempDir()
	shared, own := filepath.Join(dir, "shared"), filepath.Join(dir, "own")
	for _, folder := range []string{shared, own} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	longAgo := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(shared, longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", shared)
	path := filepath.Join(own, "result.json")
	for _, text := range []string{"first", "second"} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != text {
			t.Errorf("got %q, %v; want %q", got, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != FileMode {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(shared); err != nil || !info.ModTime().Equal(longAgo) {
		t.Errorf("the shared folder was touched: %v, %v", info.ModTime(), err)
	}
	if left, err := os.ReadDir(own); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
