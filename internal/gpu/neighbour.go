package gpu

import "slices"

// Idle is how much memory an idle GPU may hold: the driver's own share, and
// what a desktop or a monitor takes.
const Idle = 1 << 30

// Unexplained is memory in use that no listed process holds; 0 where nobody
// asked for the list, or where a process does not tell what it holds. In a
// container the list does not show everybody, and it means nothing there.
func (g GPU) Unexplained() uint64 {
	if g.Processes == nil || !g.MemoryKnown() {
		return 0
	}
	left := int64(g.Used)
	for _, p := range g.Processes {
		if !p.Bytes.Known {
			return 0
		}
		left -= p.Bytes.Value
	}
	return uint64(max(left, 0))
}

// SpinsAlone reports whether the GPU is at full utilisation with no process on
// it. For a moment after the end of a process that is nothing strange.
func (g GPU) SpinsAlone() bool {
	return g.Processes != nil && len(g.Processes) == 0 && g.Util.Above(fullUtil)
}

// Neighbour is memory of a GPU of the attempt that others hold.
type Neighbour struct {
	Index   int
	Total   uint64
	Before  uint64    // bytes in use before the attempt began: none of it the attempt's
	Ghost   uint64    // of these, bytes that no process explained; 0 where it cannot be known
	Grown   uint64    // bytes that others have taken since; 0 where it cannot be known
	Holders []Process // who holds how much now, the largest first; empty: nobody shows
}

// Neighbours looks at who else holds memory of the GPUs of an attempt, before
// being the GPUs as the attempt found them and now with process lists. ours
// tells whether a pid belongs to the attempt; it is nil where the driver's pids
// are not ours. GPUs that nobody else holds more of than Idle are left out.
func Neighbours(before, now []GPU, ours func(pid int) bool) []Neighbour {
	var found []Neighbour
	for _, then := range before {
		g, ok := byUUID(now, then.UUID)
		if !ok || !g.MemoryKnown() || !then.MemoryKnown() {
			continue
		}
		n := Neighbour{Index: g.Index, Total: g.Total, Before: then.Used}
		if ours != nil {
			n.Holders, n.Ghost = foreign(g, ours), then.Unexplained()
			n.Grown = uint64(max(held(n.Holders)-held(foreign(then, ours)), 0))
		}
		if n.Before > Idle || n.Grown > Idle {
			found = append(found, n)
		}
	}
	return found
}

// foreign are the processes on a GPU that are not ours, the largest first.
func foreign(g GPU, ours func(pid int) bool) []Process {
	var others []Process
	for _, p := range g.Processes {
		if !ours(p.PID) {
			others = append(others, p)
		}
	}
	slices.SortStableFunc(others, func(a, b Process) int { return int(b.Bytes.Value>>20) - int(a.Bytes.Value>>20) })
	return others
}

func held(processes []Process) (bytes int64) {
	for _, p := range processes {
		bytes += p.Bytes.Value
	}
	return bytes
}
