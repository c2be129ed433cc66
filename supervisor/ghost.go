package supervisor

import (
	"context"
	"fmt"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/preflight"
	"sglaunch/internal/proc"
	"sglaunch/supervisor/machine"
)

// neighbours looks at who else holds memory of the launch's GPUs; nothing where
// nobody can tell.
func (h *hands) neighbours(sample gpu.Sample) []machine.Neighbour {
	h.mu.Lock()
	before := h.baseline
	h.mu.Unlock()
	ours := h.isOurs
	if !proc.HostPIDs() {
		ours = nil
	}
	var all []machine.Neighbour
	for _, n := range gpu.Neighbours(before, h.pick(sample), ours) {
		text := preflight.Held(max(n.Before, n.Grown), n.Holders, ours == nil)
		all = append(all, machine.Neighbour{GPU: n.Index, Total: n.Total, Before: n.Before, Grown: n.Grown,
			Ghost: n.Ghost > n.Before/2, Text: fmt.Sprintf("GPU %d: %s", n.Index, text)})
	}
	return all
}

// ghostPatience is how long memory or work without a process may take to go:
// the driver is a while about a large process that has just ended.
const ghostPatience = 10 * time.Second

// settled is a sample from before an attempt. Where a GPU of the launch looks
// haunted it waits a while for a better one.
func (h *hands) settled(ctx context.Context, note func(event, text string)) (gpu.Sample, error) {
	asked, cancel := context.WithTimeout(ctx, snapshotLimit)
	sample, err := h.gpus.Snapshot(asked)
	cancel()
	if err != nil || !proc.HostPIDs() || !haunted(h.pick(sample)) {
		return sample, err
	}
	note("preflight", "a GPU is in use and no process is on it; waiting a moment for the driver")
	ctx, cancel = context.WithTimeout(ctx, ghostPatience)
	defer cancel()
	for haunted(h.pick(sample)) && pause(ctx, releasePoll) {
		if next, err := h.gpus.Snapshot(ctx); err == nil {
			sample = next
		}
	}
	return sample, nil
}

func haunted(gpus []gpu.GPU) bool {
	for _, g := range gpus {
		if g.SpinsAlone() || g.Unexplained() > gpu.Idle {
			return true
		}
	}
	return false
}

// stillThere refuses a start beside neighbours that left no room for the one
// before and still hold most of what they held: nothing of the launch is on its
// GPUs now.
func (h *hands) stillThere(in preflight.Input, beside []machine.Neighbour) []preflight.Check {
	if in.GPUs == nil {
		return nil
	}
	var checks []preflight.Check
	for _, g := range h.pick(*in.GPUs) {
		for _, n := range beside {
			if n.GPU == g.Index && g.Used > machine.Notable && g.Used > (n.Before+n.Grown)/2 {
				checks = append(checks, preflight.Check{Name: "gpu_memory", Status: preflight.Fail, Cause: "gpu_memory_held",
					Found:  fmt.Sprintf("GPU %d is as full as when the last attempt found no room: %s", g.Index, preflight.Held(g.Used, g.Processes, in.Blind)),
					Advice: "end who holds it, or wait"})
			}
		}
	}
	return checks
}
