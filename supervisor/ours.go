package supervisor

import (
	"bytes"
	"time"

	"sglaunch/internal/probe"
	"sglaunch/supervisor/machine"
)

// Requests of ours make the server print the same batches as those of others.
// Whatever it prints while one of ours is on its way says nothing of service.

// outputLag is how long a line about our request may be on its way to us.
const outputLag = 2 * time.Second

// batchMark is in every line about a batch, of prefill and of decode.
var batchMark = []byte(" batch, #")

// proberOf is the one prober of an attempt: all that we ask goes through it, so
// that there is never more than one request of ours in flight.
func (w *watcher) proberOf(attempt int) *probe.Prober {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.prober == nil || attempt != w.now {
		options, _ := w.h.probeOptions()
		w.prober = probe.New(options)
	}
	return w.prober
}

// askedByUs notes that the server works for us until the answer is called.
func (w *watcher) askedByUs() (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asking--
		w.asked = time.Now()
	}
}

// output looks at a stretch of output before it is interpreted.
func (h *hands) output(attempt int, end int64, part []byte) {
	if h.OnOutput != nil {
		h.OnOutput(part)
	}
	again := attempt == h.reread.attempt && end <= h.reread.to // a supervisor before has seen it
	if !again && bytes.Contains(part, batchMark) {
		h.watch.batch(attempt, time.Now())
	}
}

// batch takes note of a batch in the output. The first that is not for us is
// told: from then on the server serves.
func (w *watcher) batch(attempt int, at time.Time) {
	w.mu.Lock()
	ours := w.asking > 0 || at.Sub(w.asked) < outputLag
	if attempt != w.now || !w.ready || ours {
		w.mu.Unlock()
		return
	}
	first := w.worked.IsZero()
	w.worked = at
	w.mu.Unlock()
	if first {
		w.h.loop.Post(attempt, machine.Working{})
	}
}
