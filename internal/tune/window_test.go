package tune

import (
	"strings"
	"testing"

	"sglaunch/internal/tune/bench"
)

// Each thing that spoils a window, alone; without samples nothing is known, and
// nothing is spoilt.
func TestWindows(t *testing.T) {
	tests := []struct {
		window Window
		want   string // "" = it counts
	}{
		{Window{}, ""},
		{Window{Sampled: 1, Throttled: 0.05, Pressure: 0.1, Client: 0.95, Lag: 0.1, PowerCap: 1}, ""},
		{Window{Throttled: 0.06}, "a GPU throttled for 6 %"},
		{Window{Pressure: 0.11}, "tasks stalled for CPU, memory or disk for 11 %"},
		{Window{Client: 0.96}, "the client used 0.96 CPUs"},
		{Window{Lag: 0.11}, "the client was kept waiting for 11 %"},
		{Window{Foreign: []string{"python 17 on GPU 3"}}, "others used the GPUs: python 17 on GPU 3"},
		{Window{Compiling: true}, "kernels were compiled"},
		{Window{Emptied: true}, ""}, // not proven
		{Window{Emptied: true, Opening: &Opening{Computed: 999, Cached: 1}}, ""},
		{Window{Emptied: true, Opening: &Opening{Computed: 1, Cached: 999}}, "100 % of its first prompts came from the prefix cache"},
		{Window{Opening: &Opening{Computed: 1, Cached: 999}}, ""}, // nobody had emptied it
		{Window{Sampled: 0.7}, "only 70 % of it was sampled"},
	}
	for _, tt := range tests {
		got := strings.Join(DefaultStudy().Invalid(Measured{Window: tt.window}), "; ")
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%+v: got %q, want %q", tt.window, got, tt.want)
		}
	}
}

func TestEmptinessIsCounted(t *testing.T) {
	var e Emptiness
	for _, w := range []Window{
		{}, {Opening: &Opening{Computed: 100}}, // before which nothing was to be emptied
		{Emptied: true, Opening: &Opening{Computed: 100}}, {Emptied: true, Opening: &Opening{Computed: 98, Cached: 2}},
		{Emptied: true}, {Emptied: true, Opening: &Opening{Computed: 2, Cached: 98}},
	} {
		e.Count(Measured{Window: w})
	}
	if want := (Emptiness{Proven: 2, Unproven: 1, Refuted: 1}); e != want {
		t.Errorf("want %+v, got %+v", want, e)
	}
	if text := (Emptiness{}).String(); text != "" {
		t.Errorf("of nothing it says %q", text)
	}
}

func TestBrokenRuns(t *testing.T) {
	s := DefaultStudy()
	s.Limits.Failed = 0.01
	tests := []struct {
		run  Measured
		want string
	}{
		{Measured{Result: bench.Result{Requested: 100, Completed: 99, Failed: 1}}, ""},
		{Measured{Result: bench.Result{Completed: 99, Failed: 2, Error: "503"}}, "2 of 101 requests failed: 503"},
		{Measured{Result: bench.Result{Requested: 100, Completed: 98}}, "2 of 100 requests failed"},
		{Measured{Result: bench.Result{Requested: 100}}, "no request was completed"},
		{Measured{Problem: "it stalled"}, "it stalled"},
	}
	for _, tt := range tests {
		if got := s.Broken(tt.run); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.run.Result, got, tt.want)
		}
	}
}

// A launch that the morning cut short says nothing; it does not go on elsewhere.
func TestCutShort(t *testing.T) {
	a := newActor(t)
	a.study.Axes["--a"] = axisOf(1)
	a.study.Loads[0].Concurrency = []int{8, 32}
	a.plan()
	do, err := a.ready()
	if err != nil {
		t.Fatal(err)
	}
	m := flat(100)(Point{})
	m.Launch, m.Point = do.Intended.Launch, Point{Load: "chat", Concurrency: 8}
	a.write(m)
	a.now = a.n.Deadline()
	stop, ok := a.n.Next(a.now).(Stop)
	if !ok || !strings.Contains(stop.Why, "no time is left for chat@32") {
		t.Fatalf("it asks for %+v", a.n.Next(a.now))
	}
	a.write(Ended{Launch: stop.Launch, Outcome: "stopped", Text: stop.Why})
	if o := a.n.outcome(a.n.launches[0]); o.status != invalid {
		t.Errorf("it amounts to %+v", o)
	}
}
