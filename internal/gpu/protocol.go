package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The sampler and its client talk in JSON lines: commands on the sampler's
// standard input, answers on its standard output. Unknown fields are ignored.

// command is one line to the sampler.
type command struct {
	IntervalMS int64 `json:"interval_ms,omitempty"` // from now on
	Snapshot   int   `json:"snapshot,omitempty"`    // a sample with process lists, now; answered with the number
	Quit       bool  `json:"quit,omitempty"`
}

// answer is one line from the sampler; one field is set.
type answer struct {
	Sample   *Sample  `json:"sample,omitempty"`
	Snapshot int      `json:"snapshot,omitempty"` // with Sample: the newest command it answers
	Xid      *Xid     `json:"xid,omitempty"`
	Absent   string   `json:"absent,omitempty"`  // no driver here; the sampler ends
	Pending  *pending `json:"pending,omitempty"` // a call has not come back yet
}

// pending is a driver call that is taking long.
type pending struct {
	Call string        `json:"call"`
	GPU  int           `json:"gpu"` // -1 = none in particular
	For  time.Duration `json:"for_ns"`
}

// maxLine bounds a line of the protocol: 64 GPUs with long process lists stay
// far below it.
const maxLine = 4 << 20

// lineWriter writes JSON lines whole, from any goroutine. After an error it
// writes no more.
type lineWriter struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (l *lineWriter) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode a line of the sampler's protocol: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.w.Write(append(line, '\n'))
	}
	return l.err
}

// errTooLong says that the peer does not speak the protocol.
var errTooLong = errors.New("cannot read the sampler's protocol: a line is too long")
