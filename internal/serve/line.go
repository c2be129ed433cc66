package serve

import (
	"fmt"
	"math"
	"strings"
	"time"

	"sglaunch/internal/visible"
)

// Line is a status in one line: for systemd's STATUS=, tables and titles.
func (s Status) Line() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case s.Exit != nil:
		add("ended with %d: %s", s.Exit.Code, s.Exit.Reason)
		return Plain(strings.Join(parts, ", "))
	case s.Stop != nil:
		add("%s (%s)", s.State, s.Stop.By)
	case s.State == "checking":
		add("ready, not announced: %s", s.OutputCheck)
	case s.State == "starting" || s.State == "up":
		add("%s", s.doing())
	default:
		add("%s", s.State)
	}
	if s.Left != nil && !s.Ready {
		add("%s", s.Left)
	}
	if s.Next != nil {
		add("attempt %d at %s: %s", s.Attempt+1, s.Next.Time.Format("15:04:05"), s.Next.Reason)
	} else if s.Attempt > 1 {
		add("attempt %d", s.Attempt)
	}
	if s.Verdict != "" {
		add("in doubt: %s", s.Verdict)
	}
	if len(s.Degraded) > 0 {
		add("degraded: %s", strings.Join(s.Degraded, "; "))
	}
	return Plain(strings.Join(parts, ", "))
}

// doing is the phase with its counter.
func (s Status) doing() string {
	text := s.Phase
	if p := s.Progress; p != nil && !s.Ready {
		text += " " + p.String()
	}
	for _, a := range s.Activities {
		text += " (" + a + ")"
	}
	return text
}

// String is "answers checked: 41 of 75".
func (c *OutputCheck) String() string {
	switch {
	case c == nil:
		return "its answers are checked"
	case c.State == CheckRunning:
		return fmt.Sprintf("its answers are checked, %d of %d", c.Done, c.Of)
	case c.Reason != "":
		return c.State + ": " + c.Reason
	}
	return c.State
}

// String is "12 of 52 graphs, 23 %".
func (p Progress) String() string {
	if p.Total <= 0 {
		return strings.TrimSpace(fmt.Sprintf("%d %s", p.Done, p.Unit))
	}
	text := strings.TrimSpace(fmt.Sprintf("%d of %d %s", p.Done, p.Total, p.Unit))
	return fmt.Sprintf("%s, %d %%", text, 100*p.Done/p.Total)
}

// String is "ready in about 6 min".
func (l *Left) String() string {
	if l.Overdue {
		return "longer than ever before"
	}
	low, high := About(seconds(l.Low)), About(seconds(l.High))
	if low == high {
		return "ready in about " + About(seconds(l.Seconds))
	}
	return fmt.Sprintf("ready in about %s (%s to %s)", About(seconds(l.Seconds)), low, high)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// About rounds a duration as a person would.
func About(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(math.Round(d.Seconds())))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(math.Round(d.Minutes())))
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Plain makes one harmless line of a text and bounds it: the server's words may
// hold escapes that would forge ours on a terminal, or line ends that would forge
// a variable of systemd's protocol.
func Plain(text string) string {
	text = visible.Line(text)
	const most = 500 // runes
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
