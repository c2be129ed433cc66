package history

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const shardBytes = 32 << 20

// model writes shards to a real disk and drops them from the page cache.
func model(t *testing.T) (dir string, shards []string) {
	t.Helper()
	dir, err := os.MkdirTemp(".", "testmodel-") // /tmp may be memory, which is always resident
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat("weights!", shardBytes/8)), 0o600); err != nil {
			t.Fatal(err)
		}
		evict(t, path)
		shards = append(shards, path)
	}
	return dir, shards
}

func evict(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// ways are the two ways to ask the kernel, each on its own.
var ways = map[string]func(path string) (float64, error){
	"cachestat": func(path string) (float64, error) {
		share, _, err := residentShard(path)
		return share, err
	},
	"mincore": func(path string) (float64, error) {
		f, err := os.Open(path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return 0, err
		}
		return mincore(int(f.Fd()), path, st)
	},
}

func TestShardsInMemory(t *testing.T) {
	_, shards := model(t)
	path := shards[0]
	for name, ask := range ways {
		evict(t, path)
		cold, err := ask(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		warm, err := ask(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if warm < 0.9 || cold > 0.5 {
			t.Errorf("%s: %.2f after it was evicted, %.2f after it was read", name, cold, warm)
		}
	}
}

func TestResidentIsAShareOfAllBytes(t *testing.T) {
	dir, shards := model(t)
	if _, err := os.ReadFile(shards[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	share, err := Resident(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if share < 0.45 || share > 0.75 {
		t.Errorf("one of two shards was read: %.2f", share)
	}
	if got := WarmthOf(share); got != Partial {
		t.Errorf("got %q", got)
	}
}

func TestResidentFollowsLinks(t *testing.T) {
	dir, shards := model(t)
	snapshot := t.TempDir() // as in a Hugging Face cache
	abs, err := filepath.Abs(shards[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(abs, filepath.Join(snapshot, filepath.Base(shards[0]))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(shards[0]); err != nil {
		t.Fatal(err)
	}
	if share, err := Resident(t.Context(), snapshot); err != nil || share < 0.9 {
		t.Errorf("%v, %v in %s", share, err, dir)
	}
}

func TestNoModelNoAnswer(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.safetensors")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe.safetensors")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, why := range map[string]string{
		dir:                        "it holds no weights",
		filepath.Join(dir, "none"): "no such file or directory",
		empty:                      "not a directory",
	} {
		_, err := Resident(t.Context(), path)
		if err == nil || !strings.HasSuffix(err.Error(), why) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Resident(ctx, dir); err == nil {
		t.Error("an answer after the end of the context")
	}
}

// The kernel pretends that a file of somebody else is wholly resident.
func TestFilesOfOthersAreUnknown(t *testing.T) {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	st.Uid = uint32(os.Geteuid()) + 1
	if _, err := mincore(int(f.Fd()), "/proc/self/none", st); err != errNotTold {
		t.Errorf("got %v", err)
	}
}

func TestWarmthOf(t *testing.T) {
	for share, want := range map[float64]Warmth{0: Cold, 0.1: Cold, 0.11: Partial, 0.89: Partial, 0.9: Warm, 1: Warm} {
		if got := WarmthOf(share); got != want {
			t.Errorf("%v: got %q, want %q", share, got, want)
		}
	}
}

func TestJITWarmth(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "USER": "nobody-" + filepath.Base(home), "TRITON_CACHE_DIR": filepath.Join(home, "triton")}
	caches := JITCaches(func(name string) string { return env[name] })
	for _, step := range []struct {
		file string
		want Warmth
	}{
		{"", Cold},
		{".cache/flashinfer/0.6.17/100a/flashinfer_jit.log", Cold},
		{"triton/abc/matmul.json", Cold},
		{"triton/abc/matmul.cubin", Warm},
	} {
		if step.file != "" {
			path := filepath.Join(home, step.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := JITWarmth(t.Context(), caches)
		if err != nil || got != step.want {
			t.Errorf("with %q: got %q, %v, want %q", step.file, got, err, step.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if got, err := JITWarmth(ctx, caches); err == nil || got != WarmthUnknown {
		t.Errorf("without time: %q, %v", got, err)
	}
}
