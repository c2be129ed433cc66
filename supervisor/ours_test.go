package supervisor

import (
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/probe"
	"sglaunch/supervisor/machine"
)

// watching is a watcher of a launch that nobody drives; what it posts is read
// from the loop's channel.
func watching(t *testing.T) *watcher {
	t.Helper()
	h := &hands{loop: newLoop(nil, nil, nil)}
	h.live.Store(&Settings{})
	w := newWatcher(h)
	h.watch = w
	w.now, w.ready = 1, true
	return w
}

// posted lists what was posted so far.
func (w *watcher) posted() (all []machine.Body) {
	for {
		select {
		case n := <-w.h.loop.news:
			all = append(all, n.body)
		default:
			return all
		}
	}
}

// A batch is somebody's request unless one of ours is on its way, or was a
// moment ago.
func TestBatchesOfOurOwnAreNoService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t)
		line := []byte("[2026-02-19 03:00:00 TP0] Decode batch, #running-req: 1, #token: 40\n")
		see := func() { w.h.output(1, 1000, line) }
		done := w.askedByUs()
		see()
		done()
		see()
		time.Sleep(outputLag - time.Nanosecond)
		see()
		if got := w.posted(); len(got) > 0 || w.working(time.Now()) {
			t.Errorf("our own requests are told as %v", got)
		}
		time.Sleep(time.Nanosecond)
		see()
		see()
		if got := w.posted(); len(got) != 1 || got[0] != (machine.Working{}) {
			t.Errorf("the first request of another is told as %v", got)
		}
		if !w.working(time.Now()) {
			t.Error("a batch a moment ago is no work")
		}
		time.Sleep(healthPause)
		if w.working(time.Now()) {
			t.Error("a batch long ago is work")
		}
		w.h.output(1, 1000, []byte("INFO:     127.0.0.1 - \"GET /health HTTP/1.1\" 200 OK\n"))
		if w.working(time.Now()) {
			t.Error("an access line is work")
		}
	})
}

// What a supervisor before has read says nothing of now, and a batch before
// ready is the warm-up's.
func TestBatchesOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(t)
		time.Sleep(time.Minute)
		line := []byte("Prefill batch, #new-seq: 1\n")
		w.h.reread.attempt, w.h.reread.to = 1, 500
		w.h.output(1, 500, line)
		w.ready = false
		w.h.output(1, 600, line)
		w.ready = true
		w.h.output(2, 700, line) // another attempt
		if got := w.posted(); len(got) > 0 {
			t.Errorf("told as %v", got)
		}
		w.h.output(1, 501, line)
		if got := w.posted(); len(got) != 1 {
			t.Errorf("a new one is told as %v", got)
		}
	})
}

// What an answer does not prove is nothing that is wrong with the server.
func TestBadness(t *testing.T) {
	for _, c := range []struct {
		answer probe.Answer
		want   string
	}{
		{probe.Answer{Serving: probe.Up, Status: 200}, ""},
		{probe.Answer{Serving: probe.Early, Status: 200}, ""},
		{probe.Answer{Serving: probe.Unclear, Status: 401}, ""},
		{probe.Answer{Serving: probe.Unclear, Err: "tls: unknown authority"}, ""},
		{probe.Answer{Serving: probe.Down, Err: "connection refused"}, "nobody listens"},
		{probe.Answer{Serving: probe.Starting, Status: 503}, "503"},
		{probe.Answer{Serving: probe.Failing, Status: 500}, "500"},
		{probe.Answer{Serving: probe.Failing, Err: "no answer within 25s"}, "no answer within 25s"},
	} {
		if got := badness(c.answer); got != c.want {
			t.Errorf("%+v: %q, want %q", c.answer, got, c.want)
		}
	}
}
