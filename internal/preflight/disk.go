package preflight

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	littleState = 1 << 30   // logs and evidence of a few attempts
	littleCache = 4 << 30   // compiled kernels of one start
	littleTemp  = 512 << 20 // sockets, and what compilers put aside
)

// place is a folder that will be written to.
type place struct {
	dir    string
	what   string
	little uint64
}

// checkDisk looks at the folders that the launch writes to.
func checkDisk(_ context.Context, l *look) []Check {
	var checks []Check
	seen := map[string]bool{}
	for _, p := range l.places() {
		if p.dir == "" || seen[p.dir] {
			continue
		}
		seen[p.dir] = true
		if c, ok := p.check(); !ok {
			checks = append(checks, c)
		}
	}
	if len(checks) == 0 {
		checks = append(checks, fine("%d folders that are written to have space", len(seen)))
	}
	return checks
}

// places are the state directory, and for a server its caches, where the
// variables and SGLang's defaults put them.
func (l *look) places() []place {
	places := []place{{l.StateDir, "the state of sglaunch", littleState}}
	if !l.cmd.SGLang() {
		return places
	}
	cache := l.userCache()
	temp := cmp.Or(l.getenv("TMPDIR"), "/tmp")
	return append(places,
		place{temp, "temporary files", littleTemp},
		place{cmp.Or(l.getenv("SGLANG_CACHE_DIR"), filepath.Join(cache, "sglang")), "the cache of SGLang", littleCache},
		place{cmp.Or(l.getenv("FLASHINFER_WORKSPACE_BASE"), l.getenv("HOME")), "compiled kernels of FlashInfer", littleCache},
		place{cmp.Or(l.getenv("TRITON_CACHE_DIR"), filepath.Join(l.getenv("HOME"), ".triton")), "compiled kernels of Triton", littleCache},
		place{cmp.Or(l.getenv("TORCH_EXTENSIONS_DIR"), filepath.Join(cache, "torch_extensions")), "compiled extensions of torch", littleCache},
	)
}

// check looks at one folder, or at the nearest one above it that exists: the
// rest will be made.
func (p place) check() (c Check, ok bool) {
	dir := existing(p.dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return warn("", "cannot look at %s (%s): %v", p.dir, p.what, err), false
	}
	free := fs.Bavail * uint64(fs.Bsize)
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	switch {
	case errors.Is(err, unix.EROFS):
		return warn("mount it writable, or point the variable for it elsewhere", "%s (%s) is read-only", p.dir, p.what), false
	case err != nil:
		return warn("change its owner, or point the variable for it elsewhere", "%s (%s) may not be written by this user", p.dir, p.what), false
	case free < p.little:
		return warn("make room", "%s (%s) has %s free", p.dir, p.what, size(free)), false
	case fs.Files > 0 && fs.Ffree == 0:
		return warn("delete files", "the file system of %s (%s) can take no more files", p.dir, p.what), false
	}
	return Check{}, true
}

// existing is the folder itself, or the nearest one above it.
func existing(dir string) string {
	for dir != "/" && dir != "." {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
