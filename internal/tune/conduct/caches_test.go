package conduct

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/config"
	"sglaunch/internal/tune"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Caches are told by what they hold, wherever they lie: not by times, locks, or the
// order in which the autotuner writes its tactics.
func TestCachesAreToldByTheirContent(t *testing.T) {
	const rank = "flashinfer/autotune/0.6.12/sm100/0123456789abcdef/rank_tp0_pp0_dp0.json"
	look := func(change func(root string)) *tune.Caches {
		t.Helper()
		root := t.TempDir()
		put(t, filepath.Join(root, rank), `{"gemm1": ["cutlass", 3], "gemm2": ["cutlass", 7]}`)
		put(t, filepath.Join(root, "kernels", "moe.so"), "code")
		if change != nil {
			change(root)
		}
		c := cachesIn(t.Context(), []string{root, filepath.Join(root, "absent")})
		if len(c.Folders) != 1 || c.Folders[0].Path != root || c.Folders[0].Digest == "" {
			t.Fatalf("it says %+v", c)
		}
		c.Folders[0].Path = ""
		return c
	}
	usual := look(nil)
	if usual.Folders[0].Files != 2 || len(usual.Tactics) != 1 || usual.Tactics[strings.TrimPrefix(rank, "flashinfer/autotune/")] == "" {
		t.Errorf("it holds %+v", usual)
	}
	if diff := cmp.Diff(usual, look(func(root string) { put(t, filepath.Join(root, "kernels", "moe.lock"), "17") })); diff != "" {
		t.Errorf("with a lock it is another:\n%s", diff)
	}
	sorted := look(func(root string) {
		put(t, filepath.Join(root, rank), `{"gemm2": ["cutlass", 7], "gemm1": ["cutlass", 3]}`)
	})
	if diff := cmp.Diff(usual.Tactics, sorted.Tactics); diff != "" {
		t.Errorf("in another order they are other tactics:\n%s", diff)
	}
	retuned := look(func(root string) {
		put(t, filepath.Join(root, rank), `{"gemm1": ["cutlass", 4], "gemm2": ["cutlass", 7]}`)
	})
	renamed := look(func(root string) {
		if err := os.Rename(filepath.Join(root, "kernels"), filepath.Join(root, "kernels-2")); err != nil {
			t.Fatal(err)
		}
	})
	if cmp.Equal(usual.Tactics, retuned.Tactics) || cmp.Equal(usual.Folders, retuned.Folders) || cmp.Equal(usual.Folders, renamed.Folders) {
		t.Errorf("other tactics, or names, are not seen: %+v, %+v", retuned, renamed)
	}
}

// What is too large to be read between two launches is counted.
func TestALargeCacheIsCounted(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "small"), "x")
	large := filepath.Join(root, "large")
	put(t, large, "")
	if err := os.Truncate(large, cacheBytes); err != nil {
		t.Fatal(err)
	}
	want := tune.CacheFolder{Path: root, Files: 2, Bytes: cacheBytes + 1, Text: fmt.Sprintf("too large to hash: 2 files, %d bytes", cacheBytes+1)}
	if got := cacheFolder(t.Context(), root); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
}

// The folders are those that the launch's own environment names.
func TestTheCachesOfALaunch(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "own", "kernel.so"), "code")
	at := &attempt{site: &site{folder: dir}, config: config.Config{Server: config.Server{
		Command: strings.Fields("python -m sglang.launch_server --model-path /m"),
		Env:     map[string]string{"HOME": filepath.Join(dir, "home"), "TRITON_CACHE_DIR": filepath.Join(dir, "own"), "TORCHINDUCTOR_CACHE_DIR": filepath.Join(dir, "none")},
	}}}
	c := at.lookAtCaches()
	if c.Problem != "" || len(c.Folders) != 1 || c.Folders[0].Path != filepath.Join(dir, "own") {
		t.Errorf("it looked at %+v", c)
	}
}
