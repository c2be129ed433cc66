package notify

import (
	"fmt"
	"strings"
	"time"

	"sglaunch/internal/serve"
)

// extendMargin is what systemd is given beyond the machine's own deadline: when
// that has passed the machine acts, and its next wait has a deadline again.
const extendMargin = time.Minute

// repeatExtend is how often an extension is said again while nothing changes:
// systemd counts it from when it was sent.
const repeatExtend = 15 * time.Second

// Systemd turns statuses into what systemd is to be told. It is used by one
// goroutine.
type Systemd struct {
	ready    bool // READY=1 was said
	stopping bool
	line     string
	until    time.Time // the start was extended to this moment
	said     time.Time
}

// Tell returns the message for a status, "" where nothing is new. deadline is
// when the machine acts if nothing happens before; zero is never.
func (s *Systemd) Tell(st serve.Status, deadline, now time.Time) string {
	var states []string
	if st.Announced && !s.ready {
		s.ready = true
		states = append(states, "READY=1")
	}
	if (st.Stop != nil || st.Exit != nil) && !s.stopping {
		s.stopping = true
		states = append(states, "STOPPING=1")
	}
	if line := st.Line(); line != s.line {
		s.line = line
		states = append(states, "STATUS="+line)
	}
	if e := s.extend(deadline, now); e != "" {
		states = append(states, e)
	}
	return strings.Join(states, "\n")
}

// extend gives a start, or an end, time until the machine's own deadline. In
// service there is nothing to extend, and it would hold the watchdog off.
func (s *Systemd) extend(deadline, now time.Time) string {
	if s.ready && !s.stopping || deadline.IsZero() {
		return ""
	}
	until := deadline.Add(extendMargin)
	if !until.After(now) || until.Equal(s.until) && now.Sub(s.said) < repeatExtend {
		return ""
	}
	s.until, s.said = until, now
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", until.Sub(now).Microseconds())
}
