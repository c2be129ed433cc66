package machine

import (
	"fmt"
	"strings"

	"sglaunch/phases"
)

// Below these, a difference between two readings is noise.
const (
	movedBytes  = 1 << 20  // read from storage
	movedMemory = 64 << 20 // of GPU memory, up or down
	movedFaults = 1000     // page faults a second: a warm page cache reads nothing
	movedCPU    = 0.05     // cores used while a compiler is at work
	movedCached = 0.002    // of the weights, into the page cache
	pressing    = 10       // percent of the time that a task waited
	spinning    = 50       // percent of GPU use that is no idling
	idleCores   = 0.5      // of CPU, of the whole tree: polling, not work
)

// activity compares a reading with the one before.
func (m *Machine) activity(a Activity) {
	if !m.running() {
		return
	}
	m.memoryRead(a.Memory)
	before, seconds, first := m.run.Reading, m.now.Sub(m.run.ReadAt).Seconds(), m.run.ReadAt.IsZero()
	m.run.Reading, m.run.ReadAt = a, m.now
	if first || seconds <= 0 {
		return
	}
	m.run.Cores = max(a.CPU-before.CPU, 0) / seconds
	what := moving(m.run.Phase, before, a, seconds)
	if what == "" {
		m.tellSuspect()
		return
	}
	m.moved(what)
	m.tellBusy()
	if m.run.ready() {
		// While starting, the sources speak for all ranks and do not refute
		// one's fatal line. In service nothing moves without every rank.
		m.run.Fatal = nil
	}
}

// moving names what moved between two readings of the same attempt, taken
// seconds apart; "" = nothing did.
func moving(p phases.Phase, a, b Activity, seconds float64) string {
	switch {
	case grown(a.ReadBytes, b.ReadBytes) >= movedBytes && p < phases.Ready:
		return "reading from storage"
	case a.Cached != nil && b.Cached != nil && *b.Cached-*a.Cached >= movedCached && p < phases.Ready:
		return "weights come into the page cache" // a network file system may count no bytes
	case len(b.Compilers) > 0 && (b.CPU-a.CPU)/seconds > movedCPU:
		return "compiling (" + strings.Join(b.Compilers, ", ") + ")"
	case grown(a.Written, b.Written) >= movedBytes && p <= phases.LoadingWeights:
		return "writing to storage" // which is what a download comes to
	case mapsFiles(p) && float64(grown(a.Faults, b.Faults))/seconds >= movedFaults:
		return "mapping files from the page cache"
	}
	for i, g := range b.GPUs {
		if g.MemUtil > 0 {
			return fmt.Sprintf("GPU %d moves memory", g.Index)
		}
		if i < len(a.GPUs) && a.GPUs[i].Index == g.Index && min(a.GPUs[i].Used, g.Used) >= 0 &&
			abs(g.Used-a.GPUs[i].Used) >= movedMemory {
			return fmt.Sprintf("memory of GPU %d changes", g.Index)
		}
	}
	return ""
}

// mapsFiles reports whether page faults are work in this phase: imports and
// weights are read through them. Later they are only the heap's noise.
func mapsFiles(p phases.Phase) bool {
	return p == phases.Starting || p == phases.LoadingWeights || p == phases.WeightsLoaded
}

// idle reports that neither CPU nor GPU is at work, as far as both are known:
// it waits for a lock or a peer. A collective that waits in vain spins instead.
func (m *Machine) idle() bool {
	if m.run.ReadAt.IsZero() || len(m.run.Reading.GPUs) == 0 || m.run.Cores > idleCores {
		return false
	}
	for _, g := range m.run.Reading.GPUs {
		if g.Util < 0 || g.Util > spinning {
			return false
		}
	}
	return true
}

// grown is the growth of a total: a member that ended took its counts along.
func grown(a, b uint64) uint64 {
	if b < a {
		return 0
	}
	return b - a
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
