package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// MemoryGroup is a control group, of either version, that counts the host memory
// of a process and may limit it: that of a unit, of a container, of a job.
type MemoryGroup struct {
	Name   string // in the hierarchy, "/system.slice/sglaunch.service"
	folder string
	read   func(folder string) (GroupMemory, error)
}

// GroupMemory is what a control group tells of host memory. Counters are totals
// since the group was made.
type GroupMemory struct {
	Name  string
	Limit uint64 // 0 = none
	Used  uint64
	Cache uint64 // of it, file pages that the kernel can take back
	// Killed counts the processes that the kernel ended for want of memory, of
	// the machine or of a group; version 2 counts those in groups below too.
	// Counted: it is known.
	Killed  uint64
	Counted bool
	Reached uint64 // how often the group's own limit was reached
	Slowed  uint64 // how often it was slowed down above its high mark
}

// MemoryGroups are the control groups that count the memory of a process, its
// own first, then those around it as far as they show here. Pid 0 is ourselves;
// root is "/" but in tests.
func MemoryGroups(root string, pid int) []MemoryGroup {
	who := "self"
	if pid != 0 {
		who = strconv.Itoa(pid)
	}
	mounts, errMounts := readQuick(filepath.Join(root, "proc", "self", "mountinfo"))
	groups, errGroups := readQuick(filepath.Join(root, "proc", who, "cgroup"))
	if errMounts != nil || errGroups != nil {
		return nil
	}
	var all []MemoryGroup
	for _, h := range []struct {
		hierarchy
		read func(string) (GroupMemory, error)
	}{{unified, readMemory2}, {memoryGroups, readMemory1}} {
		places := h.places(string(mounts), string(groups))
		if len(places) == 0 {
			continue
		}
		for name, folder := range places[0].upwards() { // a second mount shows the same groups
			all = append(all, MemoryGroup{Name: name, folder: filepath.Join(root, folder), read: h.read})
		}
	}
	return all
}

// ReadMemory reads groups, and leaves those out that count no memory. The error
// says that the kernel did not answer for one; nothing is known of that.
func ReadMemory(groups []MemoryGroup) (all []GroupMemory, err error) {
	for _, g := range groups {
		m, errRead := g.read(g.folder)
		m.Name = g.Name
		switch {
		case errRead == nil:
			all = append(all, m)
		case !errors.Is(errRead, fs.ErrNotExist):
			err = fmt.Errorf("cannot read the memory group %s: %w", g.Name, errRead)
		}
	}
	return all, err
}

// noLimit is above what version 1 writes where there is none.
const noLimit = 1 << 60

func readMemory2(folder string) (m GroupMemory, err error) {
	f := memoryFiles{folder: folder}
	m.Used = number(f.text("memory.current"))
	if f.err != nil {
		return m, f.err
	}
	m.Limit = number(f.text("memory.max")) // "max" is no number
	stat := f.text("memory.stat")
	m.Cache = field(stat, "inactive_file") + field(stat, "active_file")
	events := f.text("memory.events")
	m.Killed, m.Counted = field(events, "oom_kill"), bytes.Contains(events, []byte("oom_kill "))
	if own := f.text("memory.events.local"); len(own) > 0 { // before 5.2 those below count too
		events = own
	}
	m.Reached, m.Slowed = field(events, "max"), field(events, "high")
	return m, f.hung()
}

func readMemory1(folder string) (m GroupMemory, err error) {
	f := memoryFiles{folder: folder}
	m.Used = number(f.text("memory.usage_in_bytes"))
	if f.err != nil {
		return m, f.err
	}
	if m.Limit = number(f.text("memory.limit_in_bytes")); m.Limit > noLimit {
		m.Limit = 0
	}
	stat := f.text("memory.stat")
	m.Cache = field(stat, "total_inactive_file") + field(stat, "total_active_file")
	control := f.text("memory.oom_control")
	m.Killed, m.Counted = field(control, "oom_kill"), bytes.Contains(control, []byte("oom_kill "))
	m.Reached = number(f.text("memory.failcnt"))
	return m, f.hung()
}

// memoryFiles reads the small files of a group. Err is the newest error, or that
// of a file that did not answer.
type memoryFiles struct {
	folder string
	err    error
}

func (f *memoryFiles) text(name string) []byte {
	text, err := readQuick(filepath.Join(f.folder, name))
	if err != nil && f.hung() == nil {
		f.err = err
	}
	return bytes.TrimSpace(text)
}

// hung is the error of a file that did not answer; one that is absent is none.
func (f *memoryFiles) hung() error {
	if errors.Is(f.err, errStuck) {
		return f.err
	}
	return nil
}

func readQuick(path string) ([]byte, error) {
	return guarded(readLimit, func() ([]byte, error) { return os.ReadFile(path) })
}

// field is the number behind a name at the beginning of a line.
func field(text []byte, name string) uint64 {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return number(bytes.TrimSpace(value))
		}
	}
	return 0
}
