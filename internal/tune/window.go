package tune

import (
	"fmt"
	"strings"
)

// covered is the share of a window that samples must cover to speak for it.
const covered = 0.8

// Invalid lists why a run says nothing about the server: what was measured is
// the client, a neighbour, the heat or the machine. A window of which nothing
// was sampled is taken as it is.
func (s Study) Invalid(m Measured) []string {
	var why []string
	bad := func(is bool, text string, args ...any) {
		if is {
			why = append(why, fmt.Sprintf(text, args...))
		}
	}
	w, l := m.Window, s.Limits
	bad(w.Throttled > l.Throttled, "a GPU throttled for %.0f %% of it", 100*w.Throttled)
	bad(w.Pressure > l.Pressure, "tasks stalled for CPU, memory or disk for %.0f %% of it", 100*w.Pressure)
	bad(w.Client > l.Client, "the client used %.2f CPUs: it is what was measured", w.Client)
	bad(w.Lag > l.Lag, "the client was kept waiting for %.0f %% of it: it is what was measured", 100*w.Lag)
	bad(len(w.Foreign) > 0, "others used the GPUs: %s", strings.Join(w.Foreign, ", "))
	bad(w.Compiling, "kernels were compiled while it ran")
	bad(w.stale(), "%.0f %% of its first prompts came from the prefix cache, though that was emptied", 100*w.reused())
	bad(w.Sampled > 0 && w.Sampled < covered, "only %.0f %% of it was sampled", 100*w.Sampled)
	return why
}

// Broken is why a run gave no result that may be compared; "" = it gave one.
// A run in which nothing was completed reports the best latencies of all.
func (s Study) Broken(m Measured) string {
	r := m.Result
	asked := max(r.Requested, r.Completed+r.Failed)
	failed := max(r.Failed, r.Requested-r.Completed)
	switch {
	case m.Problem != "":
		return m.Problem
	case r.Completed <= 0:
		return "no request was completed" + because(r.Error)
	case float64(failed) > s.Limits.Failed*float64(asked):
		return fmt.Sprintf("%d of %d requests failed%s", failed, asked, because(r.Error))
	}
	return ""
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
