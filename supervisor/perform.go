package supervisor

import (
	"context"
	"fmt"
	"time"

	"sglaunch/internal/shim/wire"
	"sglaunch/supervisor/machine"
)

// Perform hands an effect to whoever does it.
func (h *hands) Perform(e machine.Effect) {
	switch a := e.Body.(type) {
	case machine.Report:
		h.report(e.Attempt, a)
	case machine.Preflight:
		h.takeAttempt(e.Attempt)
		h.do(e.Attempt, machine.CheckLimit, func(ctx context.Context) machine.Body { return h.preflight(ctx, e.Attempt, a.Beside) })
	case machine.ApplyPatch:
		h.do(e.Attempt, machine.PatchLimit, func(ctx context.Context) machine.Body { return h.applyPatches(ctx, a.Without) })
	case machine.RevertPatch:
		h.do(e.Attempt, machine.PatchLimit, func(ctx context.Context) machine.Body { return h.revertPatches(ctx, e.Attempt, a.SetAside) })
	case machine.Spawn:
		h.spawn(e.Attempt, a)
	case machine.CheckOutput:
		h.do(e.Attempt, a.Limit+machine.AnswerMargin, func(ctx context.Context) machine.Body { return h.checkOutput(ctx, e.Attempt, a.CheckSize) })
	case machine.SignalServer:
		h.stopAsking()
		h.order(wire.Message{Type: wire.Signal, Attempt: e.Attempt, Sig: a.Sig, Scope: wire.ScopeLeader})
	case machine.KillTree:
		h.stopAsking()
		h.kill(e.Attempt, a.Limit)
	case machine.GatherEvidence:
		h.do(e.Attempt, a.Limit, func(ctx context.Context) machine.Body { return h.gather(ctx, e.Attempt, a) })
	case machine.AwaitRelease:
		h.do(e.Attempt, a.Limit, h.awaitRelease)
	case machine.Finish:
		// Serve sees the machine's end and tells the shim once all is written.
	default:
		panic(fmt.Sprintf("internal error: nobody performs %T", a))
	}
}

// do runs work aside and posts its result.
func (h *hands) do(attempt int, limit time.Duration, work func(context.Context) machine.Body) {
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, limit)
		defer cancel()
		h.loop.Post(attempt, work(ctx))
	})
}

// order queues a message to the shim.
func (h *hands) order(m wire.Message) {
	m.At = time.Now()
	select {
	case h.orders <- m:
	case <-h.ctx.Done():
	}
}

func (h *hands) sendOrders() {
	each(h.orders, h.ending, func(m wire.Message) {
		_ = h.conn.Send(m) // a shim that is gone is found by the reader
	})
}
