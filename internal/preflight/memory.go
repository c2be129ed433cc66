package preflight

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sglaunch/internal/proc"
)

const (
	// rankMemory is host memory of one rank by the time its model is loaded:
	// Python, torch, the CUDA context and communicators.
	rankMemory = 2 << 30
	// gb is the unit of SGLang's own memory flags.
	gb = 1_000_000_000
)

// checkHostMemory compares the memory that the launch will pin or fill with
// what the machine, and the group it runs in, still have.
func checkHostMemory(_ context.Context, l *look) []Check {
	available, ok := l.availableMemory()
	if !ok {
		return nil
	}
	ranks := uint64(l.server.GPUs())
	pinned := (l.gigabytes("--hicache-size") + l.gigabytes("--cpu-offload-gb")) * ranks
	switch {
	case pinned > available:
		return []Check{fail("host_memory", "lower --hicache-size or --cpu-offload-gb: they count for each rank",
			"%d ranks will pin %s of host memory, %s are available", ranks, size(pinned), size(available))}
	case pinned > available/2:
		return []Check{warn("ranks are killed while they load when it runs out", "%d ranks will pin %s of the %s of host memory available",
			ranks, size(pinned), size(available))}
	case ranks*rankMemory > available:
		return []Check{warn("stop what else runs here, or raise the memory limit", "%s of host memory available for %d ranks; each takes some %s",
			size(available), ranks, size(rankMemory))}
	}
	return []Check{fine("%s available", size(available))}
}

// gigabytes reads a flag that is a number of GB.
func (l *look) gigabytes(flag string) uint64 {
	text, ok := l.cmd.Value(flag)
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 || n > 1e6 {
		return 0
	}
	return uint64(n * gb)
}

// availableMemory is what the kernel thinks new programs can have, bounded by
// the control group.
func (l *look) availableMemory() (uint64, bool) {
	available, ok := l.meminfo("MemAvailable:")
	if limit, limited := l.groupMemory(); limited && (!ok || limit < available) {
		return limit, true
	}
	return available, ok
}

// meminfo reads one line of /proc/meminfo.
func (l *look) meminfo(name string) (uint64, bool) {
	text, err := os.ReadFile(l.path("/proc/meminfo"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			kib, err := strconv.ParseUint(f[1], 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// groupMemory is what the control groups leave: of each limit, what is not
// used by more than file pages, which the kernel gives back.
func (l *look) groupMemory() (least uint64, limited bool) {
	groups, _ := proc.ReadMemory(proc.MemoryGroups(l.root, 0)) // what does not answer limits nothing that is known
	for _, g := range groups {
		if g.Limit == 0 {
			continue
		}
		used := g.Used - min(g.Used, g.Cache)
		left := g.Limit - min(g.Limit, used)
		if !limited || left < least {
			least, limited = left, true
		}
	}
	return least, limited
}

const (
	smallShared = 1 << 30   // less than this is too little for several ranks
	manyShared  = 256 << 20 // leftovers worth a word
)

// leftovers are the names that dead servers leave in /dev/shm.
var leftovers = []string{"nccl-*", "psm_*", "torch_*", "sem.mp-*", "sem.loky-*"}

// checkSharedMemory looks at /dev/shm, through which ranks talk.
func checkSharedMemory(_ context.Context, l *look) []Check {
	dir := l.path("/dev/shm")
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return []Check{warn("mount a tmpfs there", "there is no /dev/shm: %v", err)}
	}
	total, free := fs.Blocks*uint64(fs.Bsize), fs.Bavail*uint64(fs.Bsize)
	var checks []Check
	if l.server.GPUs() > 1 && free < smallShared {
		checks = append(checks, warn("give the container more: --ipc=host or --shm-size=16g; or delete leftovers",
			"/dev/shm has %s free of %s, for %d ranks", size(free), size(total), l.server.GPUs()))
	}
	if n, bytes := left(dir); bytes > manyShared {
		checks = append(checks, warn("delete them once no server runs here",
			"%d files (%s) in /dev/shm look left behind, or belong to servers that run: %s", n, size(bytes), strings.Join(leftovers, " ")))
	}
	if len(checks) == 0 {
		checks = append(checks, fine("%s free", size(free)))
	}
	return checks
}

func left(dir string) (files int, bytes uint64) {
	for _, pattern := range leftovers {
		names, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range names {
			if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
				files++
				bytes += uint64(info.Size())
			}
		}
	}
	return files, bytes
}
