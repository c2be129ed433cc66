package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sglaunch/internal/history"
)

// TestSurroundings looks at a model in the Hub's cache, whose weights were
// written this moment, and at compiled kernels of one cache.
func TestSurroundings(t *testing.T) {
	home := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(home, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const folder = ".cache/huggingface/hub/models--zai-org--GLM-5"
	put(folder+"/refs/main", "c0ffee")
	put(folder+"/snapshots/c0ffee/model-00001-of-00001.safetensors", strings.Repeat("w", 1<<20))
	private := filepath.Join(home, "private")
	l := surroundings{Setup{
		Argv: strings.Fields("/nowhere/python -m sglang.launch_server --model-path zai-org/GLM-5"), Env: []string{"HOME=" + home}, Dir: home,
	}, private}
	if found := l.warmth(t.Context()); found != (warmth{history.Warm, history.Cold, history.Cold}) {
		t.Errorf("before anything was compiled: %+v", found)
	}
	put(".cache/flashinfer/0.5.3/100a/moe.so", "kernel")
	found := l.warmth(t.Context())
	if found != (warmth{history.Warm, history.Warm, history.Cold}) {
		t.Errorf("with kernels in the usual place: %+v", found)
	}
	if own, usual := found.caches(true), found.caches(false); own.JIT != history.Cold || usual.JIT != history.Warm {
		t.Errorf("caches of its own are %+v, the usual ones %+v", own, usual)
	}
	put("private/triton/x/kernel.cubin", "kernel")
	if found := l.warmth(t.Context()); found.private != history.Warm {
		t.Errorf("with kernels in the launch's own place: %+v", found)
	}
	if v := l.version(t.Context()); v != "" {
		t.Errorf("an interpreter that is not there has SGLang %q", v)
	}
	l.setup.Argv = []string{"sleep", "1"}
	if found := l.warmth(t.Context()); found != (warmth{}) {
		t.Errorf("of a command that is no SGLang: %+v", found)
	}
}

// A look that hangs is left behind.
func TestSurroundingsThatHang(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	hangs := make(chan struct{})
	defer close(hangs)
	answer := within(ctx, func() history.Warmth { <-hangs; return history.Warm })
	if w := <-answer; w != history.WarmthUnknown {
		t.Errorf("it answers %q", w)
	}
}
