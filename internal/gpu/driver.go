package gpu

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// libraryVariable names another library than the driver's own, for tests and
// for a driver in an odd place.
const libraryVariable = "SGLAUNCH_NVML_LIBRARY"

// driver is what a sampler asks. Every method may block for as long as the
// driver likes, except close while no other method runs.
type driver interface {
	// open makes the driver answer; an *openError says why it does not.
	open() error
	// sample reads all GPUs, with process lists where full is set. It stops
	// early, with what it has, when quit is closed.
	sample(full bool, quit <-chan struct{}) Sample
	// xid waits for the next Xid, for less than a second. It runs beside sample.
	xid() (x Xid, ok bool, err error)
	close()
}

// openError says why a driver does not answer.
type openError struct {
	absent bool // no driver on this machine: asking again is of no use
	code   int  // NVML's return code, 0 where there is none
	text   string
}

func (e *openError) Error() string { return "cannot ask the NVIDIA driver: " + e.text }

// errNoEvents says that this driver does not report Xids.
var errNoEvents = errors.New("cannot watch for Xids: the driver does not report them")

// callLog remembers which driver call is in flight, so that a hanging one can
// be named from outside.
type callLog struct {
	mu    sync.Mutex
	call  string
	gpu   int
	began time.Time
}

// begin notes a call; the returned function notes its end.
func (l *callLog) begin(call string, gpu int) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call, l.gpu, l.began = call, gpu, time.Now()
	return l.end
}

func (l *callLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call = ""
}

// longer returns the call in flight if it has lasted for limit or more.
func (l *callLog) longer(limit time.Duration) *pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.call == "" {
		return nil
	}
	if d := time.Since(l.began); d >= limit {
		return &pending{Call: l.call, GPU: l.gpu, For: d}
	}
	return nil
}

func (p *pending) String() string {
	if p.GPU < 0 {
		return p.Call
	}
	return fmt.Sprintf("%s of GPU %d", p.Call, p.GPU)
}
