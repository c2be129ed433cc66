package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// machineOf lays out the files of a machine.
func machineOf(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const mountOf2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"

// The limit of a unit is found above the group of an attempt, which counts no
// memory; whose limit was reached is told by the group's own events.
func TestMemoryOfUnifiedGroups(t *testing.T) {
	root := machineOf(t, map[string]string{
		"proc/self/mountinfo":                      mountOf2,
		"proc/7/cgroup":                            "0::/system.slice/s.service/sglaunch-1\n",
		"sys/fs/cgroup/system.slice/memory.max":    "max\n",
		"sys/fs/cgroup/system.slice/memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 5\noom_group_kill 0\n",

		"sys/fs/cgroup/system.slice/memory.current":                   "900\n",
		"sys/fs/cgroup/system.slice/memory.events.local":              "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
		"sys/fs/cgroup/system.slice/s.service/memory.max":             "800\n",
		"sys/fs/cgroup/system.slice/s.service/memory.current":         "799\n",
		"sys/fs/cgroup/system.slice/s.service/memory.stat":            "anon 700\ninactive_file 60\nactive_file 9\n",
		"sys/fs/cgroup/system.slice/s.service/memory.events":          "low 0\nhigh 3\nmax 9\noom 1\noom_kill 2\noom_group_kill 0\n",
		"sys/fs/cgroup/system.slice/s.service/sglaunch-1/memory.stat": "",
	})
	got, err := ReadMemory(MemoryGroups(root, 7))
	want := []GroupMemory{
		{Name: "/system.slice/s.service", Limit: 800, Used: 799, Cache: 69, Killed: 2, Counted: true, Reached: 9, Slowed: 3},
		{Name: "/system.slice", Used: 900, Killed: 5, Counted: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got := MemoryGroups(root, 8); got != nil {
		t.Errorf("of nobody: %v", got)
	}
}

func TestMemoryOfVersion1(t *testing.T) {
	root := machineOf(t, map[string]string{
		"proc/self/mountinfo": "31 23 0:27 /docker/a /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" + mountOf2,
		"proc/self/cgroup":    "9:cpu:/b\n4:memory:/docker/a/job\n0::/docker/a\n",

		"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		"sys/fs/cgroup/memory/memory.usage_in_bytes":     "70\n",
		"sys/fs/cgroup/memory/memory.failcnt":            "0\n",
		"sys/fs/cgroup/memory/memory.oom_control":        "oom_kill_disable 0\nunder_oom 0\n",
		"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "64\n",
		"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "63\n",
		"sys/fs/cgroup/memory/job/memory.stat":           "inactive_file 1\ntotal_inactive_file 10\ntotal_active_file 5\n",
		"sys/fs/cgroup/memory/job/memory.failcnt":        "41\n",
		"sys/fs/cgroup/memory/job/memory.oom_control":    "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
	})
	got, err := ReadMemory(MemoryGroups(root, 0))
	want := []GroupMemory{
		{Name: "/docker/a/job", Limit: 64, Used: 63, Cache: 15, Killed: 1, Counted: true, Reached: 41},
		{Name: "/docker/a", Used: 70}, // a kernel before 4.13 does not count
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// A file that hangs makes its group unknown, and no other.
func TestMemoryThatDoesNotAnswer(t *testing.T) {
	root := machineOf(t, map[string]string{
		"proc/self/mountinfo": mountOf2, "proc/self/cgroup": "0::/a/b\n",
		"sys/fs/cgroup/a/memory.current": "5\n", "sys/fs/cgroup/a/memory.max": "6\n",
		"sys/fs/cgroup/a/b/memory.current": "4\n",
	})
	pipe := filepath.Join(root, "sys/fs/cgroup/a/b/memory.events") // nobody writes: to open it hangs
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadMemory(MemoryGroups(root, 0))
	if diff := cmp.Diff([]GroupMemory{{Name: "/a", Limit: 6, Used: 5}}, got); diff != "" {
		t.Error(diff)
	}
	if err == nil || !strings.Contains(err.Error(), "/a/b") {
		t.Errorf("it is told as %v", err)
	}
	f, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0) // lets the reader go
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}
