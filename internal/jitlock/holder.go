package jitlock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holders finds who has these files open, as far as we may look. A holder of a
// baton keeps it open until he removes it.
func holders(ctx context.Context, paths map[string]bool, pids []int) map[string]int {
	found := map[string]int{}
	if len(paths) == 0 {
		return found
	}
	if pids == nil {
		pids = everybody()
	}
	for _, pid := range pids {
		if ctx.Err() != nil {
			break
		}
		folder := "/proc/" + strconv.Itoa(pid) + "/fd"
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // gone, or somebody else's
		}
		for _, e := range entries {
			if target, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && paths[target] {
				found[target] = pid
			}
		}
	}
	return found
}

func everybody() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// flocks are the holders of locks that the kernel keeps, by inode.
type flocks map[uint64][]flock

type flock struct {
	device string // major:minor as the kernel writes it
	pid    int
}

func readFlocks() flocks {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	return parseFlocks(string(text))
}

// parseFlocks reads "1: FLOCK  ADVISORY  WRITE 708 08:01:123456 0 EOF". Lines of
// those who wait have an arrow before the kind.
func parseFlocks(text string) flocks {
	found := flocks{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" && fields[1] != "POSIX" && fields[1] != "OFDLCK" {
			continue
		}
		pid, err := strconv.Atoi(fields[4])
		cut := strings.LastIndexByte(fields[5], ':')
		if err != nil || pid <= 0 || cut < 0 {
			continue // a process of another namespace reads as 0 or -1
		}
		inode, err := strconv.ParseUint(fields[5][cut+1:], 10, 64)
		if err != nil {
			continue
		}
		found[inode] = append(found[inode], flock{fields[5][:cut], pid})
	}
	return found
}

// holder finds who holds a file lock. Where device numbers do not compare, as on
// btrfs and overlays, the holder's open files decide.
func (f flocks) holder(l Lock) int {
	device := fmt.Sprintf("%02x:%02x", unix.Major(l.device), unix.Minor(l.device))
	for _, h := range f[l.inode] {
		if h.device == device || holders(context.Background(), map[string]bool{l.Path: true}, []int{h.pid})[l.Path] != 0 {
			return h.pid
		}
	}
	return 0
}
