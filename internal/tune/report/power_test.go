package report

import (
	"bytes"
	"strings"
	"testing"

	"sglaunch/internal/tune"
)

// changed is the night as Markdown, after every window was changed.
func changed(t *testing.T, change func(l tune.LaunchSummary, m *tune.Measured)) string {
	t.Helper()
	s := summary(t, 1000)
	for _, l := range s.Launches {
		for i := range l.Measured {
			change(l, &l.Measured[i])
		}
	}
	var b bytes.Buffer
	if err := Markdown(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const winner = "--chunked-prefill-size 8192"

// The energy for a thousand tokens is that of the point at which a launch gave
// most, and stands beside the baseline's.
func TestEnergyIsTold(t *testing.T) {
	text := changed(t, func(l tune.LaunchSummary, m *tune.Measured) {
		m.Result.Generated, m.Window.Joules = 1000, 900
		switch {
		case m.Point.Concurrency == 8 && l.Trial.Name == winner: // faster than it can be, and spoilt
			m.Problem, m.Window.Joules, m.Result.Metrics["output_throughput"] = "it was spoilt", 10, 1e6
		case m.Point.Concurrency == 8:
			m.Window.Joules = 2000
		case l.Trial.Baseline():
			m.Window.Joules = 1000
		}
	})
	for _, want := range []string{"| baseline |  |  | 1000 |  |", "| 900 (-10.0 %) | the winner", "| chat@8 | 627.5 | 159.4 | 12.75 | 2000 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	unknown := changed(t, func(_ tune.LaunchSummary, m *tune.Measured) { m.Window.Joules = 0 })
	if strings.Contains(unknown, "| chat@8 | 627.5 | 159.4 | 12.75 | |") || strings.Contains(unknown, "mean_tpot_ms | J/1000 tokens") {
		t.Errorf("unknown energy has a column of its own:\n%s", unknown)
	}
}

// A trial whose GPUs were allowed more or less power than the baseline's is
// flagged; one whose limit is not known is not.
func TestAnotherPowerLimitIsFlagged(t *testing.T) {
	const flag = "not comparable: its GPUs were allowed 3000 W, the baseline's 4000 W"
	for watts, flagged := range map[float64]bool{3000: true, 3999.5: false, 0: false} {
		text := changed(t, func(l tune.LaunchSummary, m *tune.Measured) {
			if l.Trial.Name == winner {
				m.Window.LimitWatts = watts
			} else if l.N == 1 {
				m.Window.LimitWatts = 0 // nobody could be asked
			}
		})
		if strings.Contains(text, flag) != flagged || strings.Contains(text, "not comparable") != flagged {
			t.Errorf("at %v W:\n%s", watts, text)
		}
	}
}
