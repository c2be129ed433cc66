package conduct

import (
	"testing"
	"time"

	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
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
