package supervisor

import (
	"bytes"

	"sglaunch/internal/shim/wire"
)

// A line of output that a supervisor died of would kill the next one too. The shim
// remembers the stretch in which that was (suspect), and what has killed twice
// (deadly).

// stretch is how much of the output is taken at once: everything, but never
// over the edge of a deadly range, and a suspect range line by line.
func (r *reader) stretch(o wire.Output) int {
	n := len(o.Data)
	edge := func(at int64) {
		if d := at - o.Offset; d > 0 && d < int64(n) {
			n = int(d)
		}
	}
	for _, d := range r.deadly {
		if d.Attempt == o.Attempt {
			edge(d.From)
			edge(d.To)
		}
	}
	s := r.suspect
	if s == nil || s.Attempt != o.Attempt {
		return n
	}
	edge(s.From)
	edge(s.To)
	if o.Offset >= s.From && o.Offset < s.To {
		if end := bytes.IndexByte(o.Data[:n], '\n'); end >= 0 {
			n = end + 1
		}
	}
	return n
}

func (r *reader) isDeadly(attempt int, offset int64) bool {
	for _, d := range r.deadly {
		if d.Attempt == attempt && offset >= d.From && offset < d.To {
			return true
		}
	}
	return false
}

// mark tells the shim which stretch is being read, or has been survived.
func (r *reader) mark(m wire.Message) {
	_ = r.conn.Send(m) // a shim that is gone is found by Receive
}
