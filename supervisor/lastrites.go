package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/supervisor/machine"
)

var errShimGone = errors.New("the shim has died")

// lastRites ends everything after the shim has died: the supervisor is the
// only one left who knows what belongs to the attempt. A launch that is not wholly
// cleared away gets no end in its record: `sglaunch recover` has still to do it.
func (h *hands) lastRites(cause error) error {
	h.endAttempt()
	h.mu.Lock()
	attempt := h.attempt
	h.mu.Unlock()
	code, why, err := h.clearAway(attempt, cause)
	why = "the shim died; " + why
	e := envelope{V: 1, Time: time.Now(), Launch: h.Name, Attempt: attempt, Event: "launch_ended",
		Text: why, Fields: map[string]any{"code": code, "reason": why}}
	h.launch.memory.told(e)
	h.records <- e
	defer h.launch.memory.finish(code)
	if err != nil {
		return err
	}
	r := &h.launch.record
	r.Ended, r.Code, r.Reason = e.Time, code, why
	return r.leaveEnd(h.State, h.launch.Launch)
}

// clearAway ends what is left of the attempt and restores the files, and says how
// far that came.
func (h *hands) clearAway(attempt int, cause error) (code int, why string, err error) {
	left := endAttemptOf(h.ctx, h.launch.Launch, attempt)
	if len(left) > 0 {
		return machine.CodeHeld, fmt.Sprintf("processes would not go: %v", left),
			fmt.Errorf("the shim is gone and %d processes of the launch would not end: %w", len(left), cmp.Or(cause, errShimGone))
	}
	if _, err := h.takeBack(h.ctx); err != nil {
		return machine.CodePatch, fmt.Sprintf("a patched file was not restored: %v", err), err
	}
	return machine.CodeLater, "everything of the launch was ended and restored", nil
}

// endAttemptOf ends what is left of one attempt whose shim has just died.
func endAttemptOf(ctx context.Context, l statedir.Launch, attempt int) []proc.Proc {
	ctx, cancel := context.WithTimeout(ctx, machine.KillLimit)
	defer cancel()
	failed := endContainer(ctx, l.Attempt(attempt))
	_, left := proc.KillAll(ctx, membership(l, l.Attempt(attempt), true))
	if failed != nil {
		left = append(left, proc.Proc{Comm: failed.Error()})
	}
	return left
}
