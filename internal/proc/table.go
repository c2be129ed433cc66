package proc

import "slices"

// Table is every process that one look at /proc showed, by pid.
type Table map[int]Proc

// Look reads all processes.
func Look() (Table, error) {
	table, _, _, err := lookAll()
	return table, err
}

// lookAll says too which pid is the newest and whether the look is complete, as
// sweep has it.
func lookAll() (table Table, newest int, complete bool, err error) {
	table = Table{}
	newest, complete, err = sweep(func(int) bool { return false }, func(p Proc) { table[p.PID] = p })
	return table, newest, complete, err
}

// Descendants returns everything below root, root itself not included.
func Descendants(root int) ([]Proc, error) {
	return find(func(t Table, p Proc) bool { return p.PID != root && t.below(p, root) })
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
