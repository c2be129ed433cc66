package supervisor

import (
	"context"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/internal/statedir"
)

// What the effects of one attempt share: its folder, what watches it, who belongs
// to it.

// takeAttempt makes the folder of an attempt, or takes the one that a
// supervisor before made.
func (h *hands) takeAttempt(attempt int) {
	h.makeFolder(attempt)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.attempt != attempt {
		h.attempt, h.since, h.ours = attempt, time.Now(), map[int]bool{}
	}
}

// attemptFolder names the folder of an attempt; what happens before the first
// attempt is written beside it.
func (h *hands) attemptFolder(attempt int) statedir.Attempt {
	return h.launch.Attempt(max(attempt, 1))
}

// makeFolder does not wait for a disk that hangs. What the disk refuses is no
// error here: every write will say so.
func (h *hands) makeFolder(attempt int) {
	ctx, cancel := context.WithTimeout(h.ctx, folderMargin)
	defer cancel()
	<-within(ctx, func() error { _, err := h.launch.NewAttempt(attempt); return err })
}

func (h *hands) attemptContext() context.Context {
	ctx, cancel := context.WithCancel(h.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends != nil {
		h.ends()
	}
	h.ends = cancel
	return ctx
}

// endAttempt stops whatever watches the attempt.
func (h *hands) endAttempt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends != nil {
		h.ends()
		h.ends = nil
	}
}

// member takes note of a process of the attempt.
func (h *hands) member(attempt int, p wire.Proc) {
	h.mu.Lock()
	if attempt == h.attempt {
		h.ours[p.PID] = true
	}
	h.mu.Unlock()
	h.watch.member(attempt, p)
}

// isOurs reports whether a pid ever belonged to the attempt.
func (h *hands) isOurs(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ours[pid]
}
