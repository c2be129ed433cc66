package gpu

import (
	"context"
	"errors"
	"time"
)

// ErrAbsent says that there is no NVIDIA driver to ask.
var ErrAbsent = errors.New("cannot ask the NVIDIA driver: there is none")

// Absent is the Source of a machine without NVIDIA GPUs, and of a launch that
// wants none read. It says so once.
type Absent struct{ box *mailbox }

// NewAbsent returns a source that says why once and then stays silent.
func NewAbsent(reason string) *Absent {
	a := &Absent{box: newMailbox()}
	a.box.put(SourceAbsent{Reason: reason})
	return a
}

// Events gives one SourceAbsent.
func (a *Absent) Events() <-chan Event { return a.box.out }

// Pace does nothing.
func (a *Absent) Pace(time.Duration) {}

// Snapshot returns ErrAbsent.
func (a *Absent) Snapshot(context.Context) (Sample, error) { return Sample{}, ErrAbsent }

// Close closes the channel of events.
func (a *Absent) Close() error {
	a.box.abandon()
	return nil
}
