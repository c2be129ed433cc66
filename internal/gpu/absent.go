package gpu

import (
	"context"
	"errors"
	"time"
)

// ErrAbsent says that there is no NVIDIA driver to ask.
var ErrAbsent = errors.New("cannot ask the NVIDIA driver: there is none")

// absent is a Source without anything behind it.
type absent struct{ box *mailbox }

// Absent returns the Source of a machine without NVIDIA GPUs, or of a launch
// that wants none read. It says why, once, and then stays silent.
func Absent(reason string) Source {
	a := absent{newMailbox()}
	a.box.put(SourceAbsent{Reason: reason})
	return a
}

func (a absent) Events() <-chan Event { return a.box.out }

func (a absent) Pace(time.Duration) {}

func (a absent) Snapshot(context.Context) (Sample, error) { return Sample{}, ErrAbsent }

func (a absent) Close() error {
	a.box.abandon()
	return nil
}
