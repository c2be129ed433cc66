package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	jitLimit = 2 * time.Second
	jitLook  = 5000 // entries of one cache
)

// compiled are the endings of what a JIT compiler leaves behind.
var compiled = map[string]bool{".so": true, ".cubin": true, ".hsaco": true, ".ptx": true}

// JITCaches are the folders in which SGLang and its kernels keep compiled
// code, as a server with that environment finds them.
func JITCaches(getenv func(string) string) []string {
	home := getenv("HOME")
	cache := cmp.Or(getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache"))
	sglang := cmp.Or(getenv("SGLANG_CACHE_DIR"), filepath.Join(home, ".cache", "sglang"))
	return []string{
		sglang, // since v0.5.18 the others lie below it, unless they are set
		filepath.Join(cmp.Or(getenv("FLASHINFER_WORKSPACE_BASE"), home), ".cache", "flashinfer"),
		cmp.Or(getenv("TRITON_CACHE_DIR"), filepath.Join(cmp.Or(getenv("TRITON_HOME"), home), ".triton", "cache")),
		cmp.Or(getenv("TORCH_EXTENSIONS_DIR"), filepath.Join(cache, "torch_extensions")),
		cmp.Or(getenv("TORCHINDUCTOR_CACHE_DIR"), filepath.Join(os.TempDir(), "torchinductor_"+getenv("USER"))),
		cmp.Or(getenv("SGLANG_DG_CACHE_DIR"), getenv("DG_JIT_CACHE_DIR"), filepath.Join(home, ".cache", "deep_gemm")),
		cmp.Or(getenv("TVM_FFI_CACHE_DIR"), filepath.Join(cache, "tvm-ffi")),
	}
}

// JITWarmth tells whether any of the caches holds compiled kernels. That is a
// guess: they may be those of another model. Who sees compilers at work in an
// attempt knows better and records Cold.
func JITWarmth(ctx context.Context, caches []string) (Warmth, error) {
	ctx, cancel := context.WithTimeout(ctx, jitLimit)
	found, err := bounded(ctx, cancel, func() (Warmth, error) {
		for _, dir := range caches {
			if holdsKernels(ctx, dir) {
				return Warm, nil
			}
		}
		return Cold, ctx.Err()
	}, func(Warmth) {})
	if err != nil {
		return WarmthUnknown, fmt.Errorf("cannot look for compiled kernels: %w", err)
	}
	return found, nil
}

var errFound = errors.New("found")

func holdsKernels(ctx context.Context, dir string) bool {
	seen := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if seen++; seen > jitLook || ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil {
			return nil // unreadable: nothing that a server could use either
		}
		if !e.IsDir() && compiled[filepath.Ext(e.Name())] {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}
