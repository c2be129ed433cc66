package supervisor

import (
	"context"
	"fmt"
	"time"

	"sglaunch/internal/probe"
	"sglaunch/supervisor/machine"
)

const (
	probePause  = 2 * time.Second  // between two HTTP probes while the server starts
	healthPause = 30 * time.Second // and in service: a probe may cost a generation
)

// probe asks HTTP until the server is ready, and in service whether it still
// answers; what follows from that is for the machine and [relaunch] act to say.
// Before ready its word counts only where the output has none: milestones hidden
// by --log-level, or a changed format.
func (w *watcher) probe(ctx context.Context, attempt int) {
	if _, ok := w.h.probeOptions(); !ok {
		return
	}
	prober := w.proberOf(attempt)
	for pause(ctx, probePause) {
		if w.isReady() {
			break
		}
		if !w.hidden() {
			continue // whose word would not count is not asked
		}
		answer := prober.Probe(ctx)
		if answer.Serving == probe.Up && w.hidden() && !w.stranger(attempt) {
			w.nowReady()
			w.h.loop.Post(attempt, machine.Answered{Endpoint: answer.Endpoint, Status: answer.Status, Ready: true})
		}
	}
	w.health(ctx, attempt, prober)
}

// health asks a server in service whether it answers, but never while it is
// seen at work: a long prefill looks like a dead scheduler from here.
func (w *watcher) health(ctx context.Context, attempt int, prober *probe.Prober) {
	for pause(ctx, healthPause) {
		if w.working(time.Now()) {
			continue
		}
		done := w.askedByUs()
		answer := prober.Alive(ctx)
		done()
		if ctx.Err() != nil {
			return
		}
		w.h.loop.Post(attempt, machine.Answered{
			Endpoint: answer.Endpoint, Status: answer.Status, Ready: answer.Serving == probe.Up, Bad: badness(answer),
		})
	}
}

// badness says what is wrong with an answer; "" = nothing, or nothing that it
// proves.
func badness(a probe.Answer) string {
	switch a.Serving {
	case probe.Up, probe.Early, probe.Unclear:
		return ""
	case probe.Down:
		return "nobody listens"
	}
	if a.Err != "" {
		return a.Err
	}
	return fmt.Sprint(a.Status)
}

// working reports whether the server is seen at work: a batch in its output not
// long ago, or a GPU of the launch that moves memory.
func (w *watcher) working(now time.Time) bool {
	w.mu.Lock()
	sample, worked := w.sample, w.worked
	w.mu.Unlock()
	if !worked.IsZero() && now.Sub(worked) < healthPause {
		return true
	}
	for _, g := range w.h.pick(sample) {
		if g.MemUtil.Above(0) {
			return true
		}
	}
	return false
}

func (w *watcher) isReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}

// hidden reports whether the output shows no milestones.
func (w *watcher) hidden() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.lines
}

// nowReady slows the samplers down: in service polling costs latency.
func (w *watcher) nowReady() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ready {
		w.ready = true
		w.h.gpus.Pace(w.h.settings().Serving)
	}
}
