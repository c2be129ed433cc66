package gpu

import (
	"fmt"
	"time"
)

// firstAnswer is how many times Options.Hang the first answer may take: without
// the persistence daemon the driver wakes each GPU first.
const firstAnswer = 4

// life is what own knows of the sampler that runs now.
type life struct {
	*Client
	process *samplerProcess
	pending *pending // the call that has not come back, as far as it told
	hang    *time.Timer
	due     time.Time     // when hang fires
	told    time.Duration // after which silence SourceHanging was told last; 0 = not hanging
	answers bool          // it has given a sample
	absent  bool
}

// live starts a sampler and serves it until it ends. more is false when there
// shall be no other one: after Close, or where there is no driver.
func (c *Client) live() (why string, more bool) {
	process, err := startSampler(c.options.Argv, c.options.Env)
	if err != nil {
		return err.Error(), true
	}
	l := &life{Client: c, process: process, hang: time.NewTimer(0)}
	defer l.hang.Stop()
	l.expect(firstAnswer * c.options.Hang)
	l.send()
	for {
		select {
		case <-c.closing:
			c.left = process.end(c.options.Grace, l.pending)
			return "", false
		case a := <-process.answers:
			l.answered(a)
		case why := <-process.ended:
			return why, !l.absent
		case <-l.hang.C:
			l.hanging()
		case c.interval = <-c.paces:
			l.send()
		case a := <-c.asks:
			c.admit(a)
			l.send()
		}
	}
}

// send tells the sampler what is wanted of it, all of it: a new one knows
// nothing, and an old one loses nothing by hearing it again.
func (l *life) send() {
	w := command{IntervalMS: max(1, l.interval.Milliseconds())}
	if len(l.waiting) > 0 {
		w.Snapshot = l.number
		if l.answers && time.Until(l.due) > l.options.Hang {
			l.expect(l.options.Hang)
		}
	}
	l.process.send(w)
}

// expect sets when the silence becomes news.
func (l *life) expect(within time.Duration) {
	l.due = time.Now().Add(within)
	l.hang.Reset(within)
}

func (l *life) answered(a answer) {
	switch {
	case a.Pending != nil:
		l.pending = a.Pending
	case a.Xid != nil:
		l.box.put(*a.Xid)
	case a.Absent != "":
		l.absent = true
		l.end(fmt.Errorf("%w: %s", ErrAbsent, a.Absent))
		l.box.put(SourceAbsent{Reason: a.Absent})
		l.hang.Stop()
	case a.Sample != nil:
		l.sampled(*a.Sample, a.Snapshot)
	}
}

func (l *life) sampled(s Sample, number int) {
	now := time.Now()
	if l.told > 0 {
		l.box.put(SourceBack{After: now.Sub(l.last)})
	}
	l.last, l.told, l.pending, l.answers = now, 0, nil, true
	l.expect(l.pause(s) + l.options.Hang)
	l.box.put(s)
	if number > 0 {
		l.satisfy(s, number)
	}
}

// pause is how long the next sample may take to come. A driver that refuses is
// asked less often than the interval says.
func (l *life) pause(s Sample) time.Duration {
	if s.Err != "" {
		return openSlowest
	}
	return l.interval
}

// hanging tells that the driver is late, and again each time the silence has
// doubled.
func (l *life) hanging() {
	silence := time.Since(l.last)
	h := SourceHanging{Last: l.last, For: silence, GPU: -1}
	if l.pending != nil {
		h.Call, h.GPU = l.pending.Call, l.pending.GPU
	}
	l.told = silence
	l.expect(silence)
	l.box.put(h)
}
