package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

	"sglaunch/internal/container"
	"sglaunch/internal/history"
	"sglaunch/internal/preflight"
	"sglaunch/internal/proc"
	"sglaunch/supervisor/machine"
)

// Sources that say why a start is slow, beside those that say that it moves.
// They are asked while the server starts and never in service.

// residencyPause is the time between two looks at the page cache. A look opens
// each shard once.
const residencyPause = 15 * time.Second

// residency looks, until the server is ready, which part of the weights is in
// the page cache. A look that hangs is left to itself and said to hang.
func (w *watcher) residency(ctx context.Context) {
	model := preflight.ModelDir(w.h.ofAttempt())
	if model == "" {
		return
	}
	for {
		share, err := history.Resident(ctx, model)
		w.mu.Lock()
		w.cached, w.uncounted = &share, ""
		if err != nil {
			w.cached = nil
		}
		if errors.Is(err, context.DeadlineExceeded) { // what cannot be told here never could
			w.uncounted = err.Error()
		}
		w.mu.Unlock()
		if !pause(ctx, residencyPause) || w.isReady() {
			break
		}
	}
	w.mu.Lock()
	w.cached, w.uncounted = nil, ""
	w.mu.Unlock()
}

// burden adds to a reading what slows the start down from outside.
func (w *watcher) burden(a *machine.Activity, server proc.ID) {
	if w.isReady() {
		return
	}
	w.mu.Lock()
	folder := w.pressure
	a.Cached = w.cached
	if w.uncounted != "" {
		a.Missing = append(a.Missing, w.uncounted)
	}
	w.mu.Unlock()
	if folder == "" {
		folder = proc.PressureOf(server.PID)
		w.mu.Lock()
		w.pressure = folder
		w.mu.Unlock()
	}
	p, err := proc.ReadPressure(folder)
	switch {
	case err == nil:
		a.Pressure = &machine.Pressure{CPU: p.CPU, Memory: p.Memory, IO: p.IO}
	case !proc.NoPressure(err):
		a.Missing = append(a.Missing, err.Error())
	}
	slices.Sort(a.Missing)
}

// shortage adds to a reading what the server's memory groups count: while it
// starts each time, in service when one of the counts, the ones told before, has
// changed.
func (w *watcher) shortage(a *machine.Activity, before []machine.MemoryGroup) (counted []machine.MemoryGroup) {
	groups, err := w.hostMemory()
	if err != nil {
		a.Missing = append(a.Missing, err.Error())
	}
	if w.isReady() && slices.EqualFunc(before, groups, countsAs) {
		return before
	}
	a.Memory = groups
	return groups
}

// hostMemory reads the memory groups of the server, or of ourselves where it has
// ended before anybody could look: it was born in ours. A container has its own,
// which the client that we see is not in.
func (w *watcher) hostMemory() (all []machine.MemoryGroup, err error) {
	if _, ok := container.Find(w.h.Argv); ok {
		return nil, nil
	}
	w.mu.Lock()
	groups, server := w.groups, w.server
	w.mu.Unlock()
	if groups == nil {
		if groups = proc.MemoryGroups("/", server); groups == nil {
			groups = proc.MemoryGroups("/", 0)
		}
		w.mu.Lock()
		w.groups = groups
		w.mu.Unlock()
	}
	read, err := proc.ReadMemory(groups)
	for _, g := range read {
		all = append(all, machine.MemoryGroup(g))
	}
	return all, err
}

// countsAs reports whether two readings of a group differ in its use at most.
func countsAs(g, o machine.MemoryGroup) bool {
	g.Used, g.Cache = o.Used, o.Cache
	return g == o
}
