package supervisor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sglaunch/internal/gpu"
	"sglaunch/internal/preflight"
	"sglaunch/internal/proc"
	"sglaunch/supervisor/machine"
)

// releasePoll is the pause between two looks at memory and ports.
const releasePoll = time.Second

// awaitRelease waits until nothing of the attempt holds GPU memory or ports
// and the next attempt finds what this one found. What is not known is not
// waited for.
func (h *hands) awaitRelease(ctx context.Context) machine.Body {
	begun := time.Now()
	h.clearBatons(ctx) // nobody of the attempt lives
	for {
		holder, foreign := h.held(ctx)
		if holder == "" {
			return machine.Released{Took: time.Since(begun).Round(10 * time.Millisecond).String()}
		}
		select {
		case <-ctx.Done():
			return machine.NotReleased{Holder: holder, Foreign: foreign}
		case <-time.After(releasePoll):
		}
	}
}

// held names what is still held; "" = all that can be seen is free. foreign:
// by somebody else, so that the next attempt may wait for it.
func (h *hands) held(ctx context.Context) (holder string, foreign bool) {
	if text, foreign := h.gpuHeld(ctx); text != "" {
		return text, foreign
	}
	if busy := preflight.BusyPorts(h.ofAttempt()); len(busy) > 0 {
		// Nothing of ours lives: either the kernel holds the port for a
		// while or somebody else took it; both may pass.
		return strings.Join(busy, "; "), true
	}
	return "", false
}

// watermark takes note of what the attempt holds: the next needs as much.
func (h *hands) watermark(s gpu.Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peak != nil {
		h.peak.Add(s)
	}
}

func (h *hands) gpuHeld(ctx context.Context) (string, bool) {
	h.mu.Lock()
	before, peak := h.baseline, h.peak
	h.mu.Unlock()
	if len(before) == 0 || peak == nil {
		return "", false
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	sample, err := h.gpus.Snapshot(ctx)
	if err != nil {
		return "", false // no driver to ask, or one that hangs: unknown stays unknown
	}
	var after []gpu.GPU
	for _, g := range before {
		if now, ok := sample.Find(g.UUID); ok {
			after = append(after, now)
		}
	}
	h.mu.Lock()
	need := peak.Needs()
	h.mu.Unlock()
	r := gpu.Released(before, after, h.isOurs, need)
	if r.Done || r.Unknown {
		return "", false
	}
	return describeRelease(r, proc.HostPIDs())
}

// describeRelease says in words who holds what. In a container, where not
// everybody shows, memory that no process explains may be a neighbour's.
func describeRelease(r gpu.Release, everybody bool) (text string, foreign bool) {
	var ours, others []string
	for _, o := range r.Ours {
		ours = append(ours, fmt.Sprintf("process %d of this launch holds %smemory of GPU %d", o.PID, amount(o.Bytes), o.Index))
	}
	for _, g := range r.Ghosts {
		text := fmt.Sprintf("GPU %d holds %d MiB that no process explains", g.Index, g.Bytes>>20)
		if g.Util.Known {
			text = fmt.Sprintf("GPU %d is at %d %% with no process on it", g.Index, g.Util.Value)
		}
		if everybody {
			ours = append(ours, text)
		} else {
			others = append(others, text+" in this container")
		}
	}
	for _, f := range r.Foreign {
		others = append(others, fmt.Sprintf("%s, not of this launch, holds %smemory of GPU %d", whoIf(everybody, f.PID), amount(f.Bytes), f.Index))
	}
	all := append(ours, others...)
	if len(all) == 0 {
		for _, s := range r.Short {
			all = append(all, fmt.Sprintf("only %d MiB of GPU %s are free", s.Free>>20, s.UUID))
		}
	}
	return strings.Join(all, "; "), len(ours) == 0
}

// whoIf names a process where its number means the same to the driver as here.
func whoIf(known bool, pid int) string {
	if known {
		return proc.Who(pid)
	}
	return fmt.Sprintf("process %d", pid)
}

// amount is "12 MiB of ", or nothing where it is not known.
func amount(r gpu.Reading) string {
	if !r.Known {
		return ""
	}
	return fmt.Sprintf("%d MiB of ", r.Value>>20)
}
