package gpu

import (
	"context"
	"time"
)

// Source gives news of the GPUs. Its methods may be called from any goroutine.
type Source interface {
	// Events is the one channel of news. It is closed after Close, when the
	// last piece of news was given.
	Events() <-chan Event
	// Pace changes the time between two samples, from now on.
	Pace(interval time.Duration)
	// Snapshot asks for a sample with the process lists, taken after the call.
	// It may appear among the events too. An error means that the context ended
	// first, or that there is no driver or no sampler: nothing is known then.
	Snapshot(ctx context.Context) (Sample, error)
	// Close ends the source, gently. An error means that something is left
	// behind, and names it.
	Close() error
}

// Event is a piece of news: Sample, Xid, SourceAbsent, SourceHanging,
// SourceBack or SourceLost.
type Event interface{ event() }

// Xid is an error that a GPU reported while the source was watching.
type Xid struct {
	At    time.Time `json:"at"`
	Code  int       `json:"code"`
	UUID  string    `json:"uuid,omitempty"`
	Index int       `json:"index"`

	// What only the line in the kernel log tells.
	Recovery Reading `json:"recovery,omitzero"` // of Xid 154: see GPU.Recovery
	Fatal    bool    `json:"fatal,omitempty"`   // of an NVLink error (Xid 144 to 150)
	Harmless bool    `json:"harmless,omitempty"`
}

// SourceAbsent says, once, that there is no NVIDIA driver to ask. Nothing else
// follows it.
type SourceAbsent struct {
	Reason string
}

// SourceHanging says that the driver has not answered for longer than it
// should: a fact about the driver, not about the server. A healthy server that
// pins host memory can cause it for minutes. It is repeated at growing
// intervals until SourceBack or SourceLost.
type SourceHanging struct {
	Last time.Time     // of the last answer
	For  time.Duration // since then
	Call string        // the NVML function that has not come back; "" where even that is unknown
	GPU  int           // the GPU it was asked about; -1 for none
}

// SourceBack says that a hanging driver answers again.
type SourceBack struct {
	After time.Duration
}

// SourceLost says that the sampler has ended unasked. Final is true when no
// further one will be started; else the next starts after Retry.
type SourceLost struct {
	Last  time.Time // of the last answer
	Why   string
	Retry time.Duration
	Final bool
}

func (Sample) event()        {}
func (Xid) event()           {}
func (SourceAbsent) event()  {}
func (SourceHanging) event() {}
func (SourceBack) event()    {}
func (SourceLost) event()    {}
