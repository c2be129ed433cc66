package supervisor

import (
	"context"
	"errors"
	"slices"
	"time"

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
	model := preflight.ModelDir(w.h.Argv, w.h.Env, w.h.Dir)
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
