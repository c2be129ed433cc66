package gpu

import (
	"context"
	"sync"
	"time"
)

// Fake is a Source that a test drives by hand.
type Fake struct {
	box *mailbox

	mu       sync.Mutex
	last     *Sample
	interval time.Duration
}

// NewFake returns a source without any news.
func NewFake() *Fake { return &Fake{box: newMailbox()} }

// Put delivers an event; a Sample is also what Snapshot returns from now on.
func (f *Fake) Put(e Event) {
	if s, ok := e.(Sample); ok {
		f.mu.Lock()
		f.last = &s
		f.mu.Unlock()
	}
	f.box.put(e)
}

// Interval returns what Pace was last called with.
func (f *Fake) Interval() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.interval
}

// Events gives what Put was called with.
func (f *Fake) Events() <-chan Event { return f.box.out }

// Pace remembers the interval.
func (f *Fake) Pace(interval time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.interval = interval
}

// Snapshot returns the last sample put, or ErrAbsent.
func (f *Fake) Snapshot(context.Context) (Sample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		return Sample{}, ErrAbsent
	}
	return *f.last, nil
}

// Close closes the channel of events.
func (f *Fake) Close() error {
	f.box.abandon()
	return nil
}
