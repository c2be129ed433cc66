package conduct

import (
	"strings"
	"testing"
	"time"

	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
	"sglaunch/internal/visible"
)

// What a person reads while the night runs.
func TestLines(t *testing.T) {
	study := smallStudy(nil)
	point := tune.Point{Load: "chat", Concurrency: 8}
	result := bench.Result{Requested: 64, Completed: 63, Failed: 1, Metrics: map[string]float64{"output_throughput": 2048.4}}
	noted := result
	noted.Failed, noted.Notes = 0, []string{"asked for 16 requests/s, 9.5 were done"}
	trials := []tune.Trial{{ID: tune.BaselineID, Name: "baseline"}, {ID: "t-1", Name: "--a 1"}}
	for _, c := range []struct {
		body tune.Body
		want string
	}{
		{tune.Measured{Launch: 3, Point: point, Result: result}, "launch 3, chat@8: output_throughput 2048, 1 of 64 requests failed"},
		{tune.Measured{Launch: 3, Point: point, Result: noted, Window: tune.Window{Lag: 0.5}},
			"launch 3, chat@8: output_throughput 2048; asked for 16 requests/s, 9.5 were done; it does not count: the client was kept waiting for 50 % of it: it is what was measured"},
		{tune.Measured{Launch: 3, Point: point, Problem: "it stalled"}, "launch 3, chat@8: it stalled"},
		{tune.Measured{Launch: 1, Point: tune.Point{Soak: true}, Took: 150 * time.Second, Result: bench.Result{Notes: []string{"the GPUs are warm, 67 °C"}}}, "launch 1, warm-up for 2m30s: the GPUs are warm, 67 °C"},
		{tune.Skipped{Trial: "t-1", Rule: "failed", Text: "oom_weights"}, "given up: --a 1: oom_weights"},
		{tune.Skipped{Trial: "t-1", Rule: "dominated", Text: "--a 1 is no better than 0"}, "not tried: --a 1: --a 1 is no better than 0"},
		{tune.Flushed{OK: true}, ""},
	} {
		words := teller{}
		words.line(tune.Record{Body: tune.Planned{Study: study, Trials: trials}})
		if got := words.line(tune.Record{Body: c.body}); got != c.want {
			t.Errorf("%T:\n got %q\nwant %q", c.body, got, c.want)
		}
	}
}

// Others' words in a record or a status are one line, of what can be seen: on a
// terminal a line of its own would be taken for ours, and systemd would obey it.
func TestOthersWordsAreNotObeyed(t *testing.T) {
	const evil = "boom\x1b[2J\nREADY=1\r\nsglaunch: ready\u202e"
	const want = "boom[2J READY=1  sglaunch: ready"
	words := teller{}
	if got := words.line(tune.Record{Body: tune.Ended{Launch: 2, Outcome: "crashed", Text: evil}}); got != "launch 2 crashed: "+want {
		t.Errorf("a record is told as %q", got)
	}
	var b strings.Builder
	st := Status{Study: evil, Now: &Now{Launch: 1, Name: evil, Point: evil}, Verdict: evil, Serving: evil, Text: evil + evil}
	if err := st.Print(&b); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 6 {
		t.Errorf("it has %d lines", lines)
	}
	if strings.Count(b.String(), want) != 7 || b.String() != visible.Lines(b.String()) {
		t.Errorf("a status is told as %q", b.String())
	}
}
