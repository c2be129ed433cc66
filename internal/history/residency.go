package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sglaunch/internal/plain"
)

// Bounds of looking at the page cache; a preflight waits for it.
const (
	residencyLimit = 3 * time.Second
	maxShards      = 2000    // of one checkpoint; DeepSeek-V3 has 163
	windowBytes    = 4 << 20 // of one look by mincore
	windows        = 64      // looks at one shard, spread evenly
)

// shardSuffixes are the files that hold weights.
var shardSuffixes = []string{".safetensors", ".bin", ".pt", ".pth", ".gguf"}

var errNotTold = errors.New("the kernel does not tell us about files of others")

// Resident tells which part of the weights in a model's folder is in the page
// cache, from 0 to 1, without reading any of them. It takes at most three
// seconds, even where the folder is on a disk that hangs.
func Resident(ctx context.Context, model string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, residencyLimit)
	share, err := bounded(ctx, cancel, func() (float64, error) { return resident(ctx, model) }, func(float64) {})
	if err != nil {
		return 0, fmt.Errorf("cannot tell how much of %q is in memory: %w", model, err)
	}
	return share, nil
}

func resident(ctx context.Context, model string) (float64, error) {
	shards, err := shardsOf(model)
	if err != nil {
		return 0, err
	}
	var cached, total float64
	for _, path := range shards {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		share, size, err := residentShard(path)
		if err != nil {
			return 0, err
		}
		cached += share * float64(size)
		total += float64(size)
	}
	if total == 0 {
		return 0, errors.New("it holds no weights")
	}
	return cached / total, nil
}

func shardsOf(model string) ([]string, error) {
	entries, err := os.ReadDir(model)
	if err != nil {
		return nil, plain.Error(err)
	}
	var shards []string
	for _, e := range entries {
		if isShard(e.Name()) && len(shards) < maxShards {
			shards = append(shards, filepath.Join(model, e.Name()))
		}
	}
	return shards, nil
}

func isShard(name string) bool {
	for _, suffix := range shardSuffixes {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

func residentShard(path string) (share float64, size int64, err error) {
	// Not blocking, for the case that somebody named a pipe like a shard.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size == 0 {
		return 0, 0, nil
	}
	share, err = cachestat(fd, st.Size)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		share, err = mincore(fd, path, st)
	}
	return share, st.Size, err
}

// cachestat asks the kernel's own count (Linux 6.5 and later).
func cachestat(fd int, size int64) (float64, error) {
	var stat unix.Cachestat_t
	if err := unix.Cachestat(uint(fd), &unix.CachestatRange{Len: uint64(size)}, &stat, 0); err != nil {
		return 0, err
	}
	pages := pagesOf(size)
	return min(float64(stat.Cache)/float64(pages), 1), nil
}

// mincore looks at windows of a mapping, none of which it touches. To those
// who may not write a file that is not theirs, the kernel reports every page
// as resident.
func mincore(fd int, path string, st unix.Stat_t) (float64, error) {
	if int(st.Uid) != unix.Geteuid() && unix.Access(path, unix.W_OK) != nil {
		return 0, errNotTold
	}
	step := max(st.Size/windows, windowBytes)
	step -= step % int64(os.Getpagesize())
	var cached, seen int
	for at := int64(0); at < st.Size; at += step {
		c, s, err := mincoreWindow(fd, at, int(min(windowBytes, st.Size-at)))
		if err != nil {
			return 0, err
		}
		cached, seen = cached+c, seen+s
	}
	return float64(cached) / float64(seen), nil
}

func mincoreWindow(fd int, at int64, length int) (cached, seen int, err error) {
	mapped, err := unix.Mmap(fd, at, length, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Munmap(mapped)
	vec := make([]byte, pagesOf(int64(length)))
	if err := sysMincore(mapped, vec); err != nil {
		return 0, 0, err
	}
	for _, v := range vec {
		cached += int(v & 1)
	}
	return cached, len(vec), nil
}

func pagesOf(bytes int64) int64 {
	page := int64(os.Getpagesize())
	return (bytes + page - 1) / page
}

// WarmthOf names a share of a cache. A start from a half-full cache is like
// neither a cold nor a warm one.
func WarmthOf(share float64) Warmth {
	switch {
	case share >= 0.9:
		return Warm
	case share <= 0.1:
		return Cold
	default:
		return Partial
	}
}
