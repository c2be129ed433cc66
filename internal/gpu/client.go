package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Options of a Client.
type Options struct {
	Argv     []string      // the command that runs ServeSampler on its standard input and output
	Env      []string      // its environment; nil = ours
	Interval time.Duration // between two samples; 0 = 1 s
	Hang     time.Duration // the driver is hanging when it answers so much later than it should; 0 = 10 s
	Grace    time.Duration // of Close: for a sampler to end, before and again after SIGTERM; 0 = 5 s

	// Pauses before a sampler that ended is started again, one after another;
	// when they are used up, none is. An hour of life starts them anew.
	// nil = 1 s, 10 s, 1 min, 5 min, 10 min.
	Pauses []time.Duration
}

// goodLife is how long a sampler lives to be forgiven its predecessors' ends.
const goodLife = time.Hour

func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, time.Second)
	o.Hang = cmp.Or(o.Hang, 10*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	if o.Pauses == nil {
		o.Pauses = []time.Duration{time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute}
	}
	return o
}

// ErrLost says that the driver can no longer be asked, because its sampler has
// ended too often.
var ErrLost = errors.New("cannot ask the NVIDIA driver: its sampler has ended too often")

// ErrClosed says that the source was closed.
var ErrClosed = errors.New("cannot ask the NVIDIA driver: the source is closed")

// Client is the Source that owns a sampler process. One goroutine, own, holds
// all that changes.
type Client struct {
	options Options
	box     *mailbox
	asks    chan ask
	paces   chan time.Duration
	closing chan struct{}
	once    sync.Once
	closed  chan struct{} // when own has returned
	left    error         // valid when closed: what Close left behind

	// Of own alone.
	interval time.Duration
	last     time.Time // of the last answer; of the start, before there is one
	number   int       // of the newest snapshot asked for
	waiting  []waiter
	gone     error // nothing will ever answer again
}

// ask is somebody who wants a snapshot.
type ask struct {
	reply chan<- reply // capacity 1
}

type reply struct {
	sample Sample
	err    error
}

type waiter struct {
	number int
	reply  chan<- reply
}

// Start starts the sampler. It returns at once; that it could not be started
// is news like any other.
func Start(o Options) *Client {
	o = o.withDefaults()
	c := &Client{
		options:  o,
		box:      newMailbox(),
		asks:     make(chan ask),
		paces:    make(chan time.Duration),
		closing:  make(chan struct{}),
		closed:   make(chan struct{}),
		interval: o.Interval,
	}
	go c.own()
	return c
}

// Events gives the news.
func (c *Client) Events() <-chan Event { return c.box.out }

// Pace changes the time between two samples.
func (c *Client) Pace(interval time.Duration) {
	select {
	case c.paces <- interval:
	case <-c.closed:
	}
}

// Snapshot asks for a sample with process lists.
func (c *Client) Snapshot(ctx context.Context) (Sample, error) {
	replies := make(chan reply, 1)
	select {
	case c.asks <- ask{replies}:
	case <-c.closed:
		return Sample{}, ErrClosed
	case <-ctx.Done():
		return Sample{}, fmt.Errorf("cannot ask the NVIDIA driver: %w", ctx.Err())
	}
	select {
	case r := <-replies:
		return r.sample, r.err
	case <-ctx.Done():
		return Sample{}, fmt.Errorf("cannot get an answer of the NVIDIA driver: %w", ctx.Err())
	}
}

// Close ends the sampler: its input is closed, then it gets SIGTERM, never
// SIGKILL. Events that still wait are dropped.
func (c *Client) Close() error {
	c.once.Do(func() { close(c.closing) })
	<-c.closed
	c.box.abandon()
	return c.left
}

// own starts samplers and serves the callers until Close.
func (c *Client) own() {
	defer close(c.closed)
	defer c.answerAll(ErrClosed)
	c.last = time.Now()
	for lost := 0; ; lost++ {
		began := time.Now()
		why, more := c.live()
		if !more {
			break
		}
		if time.Since(began) > goodLife {
			lost = 0
		}
		if lost >= len(c.options.Pauses) {
			c.end(ErrLost)
			c.box.put(SourceLost{Last: c.last, Why: why, Final: true})
			break
		}
		pause := c.options.Pauses[lost]
		c.box.put(SourceLost{Last: c.last, Why: why, Retry: pause})
		if !c.rest(pause) {
			return
		}
	}
	c.rest(-1)
}

// end remembers that nothing will answer any more, and tells those who wait.
func (c *Client) end(why error) {
	c.gone = why
	c.answerAll(why)
}

func (c *Client) answerAll(err error) {
	for _, w := range c.waiting {
		w.reply <- reply{err: err}
	}
	c.waiting = nil
}

// rest serves the callers while there is no sampler; a negative pause lasts
// until Close. It returns false on Close.
func (c *Client) rest(pause time.Duration) bool {
	var over <-chan time.Time
	if pause >= 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-c.closing:
			return false
		case <-over:
			return true
		case c.interval = <-c.paces:
		case a := <-c.asks:
			c.admit(a)
		}
	}
}

// admit takes up a caller who wants a snapshot.
func (c *Client) admit(a ask) {
	if c.gone != nil {
		a.reply <- reply{err: c.gone}
		return
	}
	c.number++
	c.waiting = append(c.waiting, waiter{c.number, a.reply})
}

// satisfy gives a snapshot to those who asked before it was taken.
func (c *Client) satisfy(s Sample, number int) {
	c.waiting = slices.DeleteFunc(c.waiting, func(w waiter) bool {
		if w.number > number {
			return false
		}
		w.reply <- reply{sample: s}
		return true
	})
}
