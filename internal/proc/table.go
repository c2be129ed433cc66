package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Table is every process that one look at /proc showed, by pid.
type Table map[int]Proc

// Look reads all processes. What appears or ends meanwhile may be missing.
func Look() (Table, error) {
	pids, err := allPIDs()
	if err != nil {
		return nil, err
	}
	table := make(Table, len(pids))
	for _, pid := range pids {
		if p, err := Identify(pid); err == nil {
			table[pid] = p
		}
	}
	return table, nil
}

func allPIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// Descendants returns everything below root, root itself not included.
func Descendants(root int) ([]Proc, error) {
	return find(func(t Table, p Proc) bool { return p.PID != root && t.below(p, root) })
}

// Group returns the members of a process group, zombies included.
func Group(group int) ([]Proc, error) {
	return find(func(_ Table, p Proc) bool { return p.Group == group })
}

// Session returns the members of a session, zombies included.
func Session(session int) ([]Proc, error) {
	return find(func(_ Table, p Proc) bool { return p.Session == session })
}

// WithMarker returns the processes whose environment shows NAME=value.
func WithMarker(marker string) ([]Proc, error) {
	return find(func(_ Table, p Proc) bool { return HasEnv(p.PID, marker) })
}

func find(want func(Table, Proc) bool) ([]Proc, error) {
	table, err := Look()
	if err != nil {
		return nil, err
	}
	var found []Proc
	for _, p := range table {
		if want(table, p) {
			found = append(found, p)
		}
	}
	sortProcs(found)
	return found, nil
}

func sortProcs(procs []Proc) {
	slices.SortFunc(procs, func(a, b Proc) int { return a.PID - b.PID })
}

// below reports whether p is root or stands under it. A look is not atomic, so
// a chain of parents may be broken or, with reused pids, even closed.
func (t Table) below(p Proc, root int) bool {
	for range len(t) {
		if p.PID == root {
			return true
		}
		parent, ok := t[p.PPID]
		if !ok {
			return false
		}
		p = parent
	}
	return false
}
