package preflight

import (
	"context"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	fewFiles     = 65535 // SGLang raises its own soft limit to this, as far as it may
	fewProcesses = 4096  // threads of eight ranks with their compilers
)

// checkLimits looks at the resource limits that the server inherits.
func checkLimits(_ context.Context, l *look) []Check {
	var checks []Check
	if hard, ok := hardLimit(unix.RLIMIT_NOFILE); ok && hard < fewFiles {
		checks = append(checks, warn("raise it: ulimit -Hn, LimitNOFILE=, --ulimit nofile", "at most %d files may be open", hard))
	}
	if hard, ok := hardLimit(unix.RLIMIT_AS); ok {
		checks = append(checks, warn("unset it: ulimit -v unlimited", "address space is limited to %s; CUDA reserves more than all memory", size(hard)))
	}
	if hard, ok := hardLimit(unix.RLIMIT_MEMLOCK); ok && l.pins() {
		checks = append(checks, warn("raise it: ulimit -l unlimited, LimitMEMLOCK=infinity, --ulimit memlock=-1",
			"at most %s of memory may be locked, and the launch pins memory", size(hard)))
	}
	if hard, ok := hardLimit(unix.RLIMIT_NPROC); ok && hard < fewProcesses {
		checks = append(checks, warn("raise it: ulimit -u, LimitNPROC=", "at most %d processes and threads are allowed", hard))
	}
	if l.dumps() {
		checks = append(checks, warn("set it to 0: ulimit -c 0, LimitCORE=0", "a crash writes the memory of every rank to disk as a core file"))
	}
	if len(checks) == 0 {
		checks = append(checks, fine("nothing too low"))
	}
	return checks
}

// hardLimit returns a limit; ok = there is one, which even the server itself
// cannot raise.
func hardLimit(resource int) (bytes uint64, ok bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil || limit.Max == unix.RLIM_INFINITY {
		return 0, false
	}
	return limit.Max, true
}

// pins tells whether the launch locks much memory: host caches, or RDMA
// between nodes.
func (l *look) pins() bool {
	return l.server.Nodes > 1 || l.cmd.Has("--enable-hierarchical-cache") || l.given("--cpu-offload-gb")
}

// dumps tells whether a crash writes core files of any size into a folder.
func (l *look) dumps() bool {
	var limit unix.Rlimit
	pattern, err := os.ReadFile(l.path("/proc/sys/kernel/core_pattern"))
	return err == nil && !strings.HasPrefix(string(pattern), "|") &&
		unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil && limit.Cur == unix.RLIM_INFINITY
}
