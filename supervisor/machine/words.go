package machine

import (
	"fmt"
	"strings"
	"time"

	"sglaunch/internal/shim/wire"
)

// Words that many sentences need.

func describe(procs []wire.Proc) string {
	if len(procs) == 0 {
		return "which ones is not known"
	}
	var all []string
	for _, p := range procs {
		all = append(all, fmt.Sprintf("%d %s (%s)", p.PID, p.Comm, p.State))
	}
	return strings.Join(all, ", ")
}

func how(s *wire.Status) string {
	if s == nil {
		return ""
	}
	return ": " + s.String()
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// round shows a duration as a person would say it.
func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

func gib(bytes uint64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

func often(times uint64) string {
	if times == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", times)
}
