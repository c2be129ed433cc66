package tune

import (
	"strings"
	"testing"
	"time"

	"sglaunch/internal/visible"
)

// outlook is a machine on which nothing is unknown.
func outlook() Outlook {
	return Outlook{
		Now: evening, Zone: time.UTC, Noise: 0.01,
		Expect: Estimate{Start: 20 * time.Minute, Load: 5 * time.Minute, Release: time.Minute},
		Flags:  map[string]bool{"--mem-fraction-static": true, "--a": true},
	}
}

func TestPlan(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Study, *Outlook)
		refuse string // part of a problem; "" = none
		warn   string
		launch int // 0 = any
	}{
		// Ten hours of launches of 26 minutes: the field's "16 launches in 8 h".
		{"a night that fits", func(*Study, *Outlook) {}, "", "", 18},
		{"too many", func(s *Study, _ *Outlook) { s.Axes["--a"] = axisOf(30) }, "of 30 trials do not fit before 08:00", "", 0},
		{"too many, and wanted so", func(s *Study, _ *Outlook) { s.Axes["--a"], s.Partial = axisOf(30), true }, "", "", 0},
		{"too late", func(s *Study, _ *Outlook) { s.Deadline = Deadline{In: time.Hour} }, "no trial fits before 23:00", "", 0},
		{"a flag that is gone", func(s *Study, _ *Outlook) { s.Axes["--mem-fraction-statik"] = axisOf(1) }, "the installed server has no flag --mem-fraction-statik: did you mean --mem-fraction-static?", "", 0},
		{"a flag that is only left out", func(s *Study, _ *Outlook) { s.Axes["--b"] = Axis{Values: []Value{{Kind: Absent}}} }, "", "", 0},
		{"pretended acceptance", func(s *Study, _ *Outlook) {
			s.Axes["$SGLANG_SIMULATE_ACC_LEN"] = Axis{Values: []Value{TextValue("3")}}
		}, "$SGLANG_SIMULATE_ACC_LEN=3 makes a server fast and its answers wrong", "", 0},
		{"pretended acceptance of the base", func(_ *Study, o *Outlook) { o.Env = []string{"A=1", "SGLANG_SIMULATE_ACC_LEN=3"} }, "SGLANG_SIMULATE_ACC_LEN of the base makes", "", 0},
		{"no pretended acceptance", func(_ *Study, o *Outlook) { o.Env = []string{"SGLANG_SIMULATE_ACC_LEN="} }, "", "", 0},
		{"pretended acceptance, switched off", func(s *Study, _ *Outlook) {
			s.Axes["$SGLANG_SIMULATE_ACC_LEN"] = Axis{Values: []Value{TextValue("-1")}}
		}, "", "", 0},
		{"experts dealt out", func(_ *Study, o *Outlook) { o.Env = []string{"SGLANG_SIMULATE_UNIFORM_EXPERTS=true"} }, "SGLANG_SIMULATE_UNIFORM_EXPERTS of the base", "", 0},
		{"weights that are none", func(s *Study, _ *Outlook) {
			s.Trials = []Explicit{{Name: "fast", Set: map[string]Value{"--load-format": TextValue("dummy")}}}
		}, "--load-format dummy makes", "", 0},
		{"a part of the model", func(_ *Study, o *Outlook) {
			o.Command = []string{"python", "-m", "sglang.launch_server", "--model-path", "/m", "--json-model-override-args", `{"num_hidden_layers": 4}`}
		}, "--json-model-override-args", "", 0},
		{"a test may", func(s *Study, o *Outlook) { s.Test, o.Env = true, []string{"SGLANG_SIMULATE_ACC_LEN=3"} }, "", "a test: with SGLANG_SIMULATE_ACC_LEN of the base", 0},
		{"no help", func(_ *Study, o *Outlook) { o.Flags = nil }, "", "could not be asked", 0},
		{"an unknown patch", func(s *Study, _ *Outlook) { s.Axes["patches"] = Axis{Values: []Value{TextValue("mine")}} }, `there is no patch "mine"`, "", 0},
		{"patches", func(s *Study, o *Outlook) {
			s.Axes["patches"], o.Patches = Axis{Values: []Value{TextValue("mine flashinfer-cutlass-autotune")}}, []string{"mine"}
		}, "", "", 0},
		{"nobody knows the noise", func(_ *Study, o *Outlook) { o.Noise = 0 }, "", "1.0 % is assumed", 0},
		{"random prompts and experts", func(_ *Study, o *Outlook) { o.Command = []string{"--moe-runner-backend", "triton"} }, "", "synthetic prompts: how the experts", 0},
		{"cold caches", func(s *Study, _ *Outlook) { s.Caches = CachesCold }, "", "5 to 20 GB", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, o := newActor(t).study, outlook()
			s.Axes["--a"] = axisOf(5)
			tt.change(&s, &o)
			p, err := NewPlan(s, o)
			if err != nil {
				t.Fatal(err)
			}
			text := p.Text()
			if problems := strings.Join(p.Problems, "\n"); !strings.Contains(problems, tt.refuse) || tt.refuse == "" && problems != "" {
				t.Errorf("want %q refused in\n%s", tt.refuse, text)
			}
			if !strings.Contains(strings.Join(p.Warnings, "\n"), tt.warn) {
				t.Errorf("want the note %q in\n%s", tt.warn, text)
			}
			if tt.launch != 0 && len(p.Launches) != tt.launch {
				t.Errorf("want %d launches in\n%s", tt.launch, text)
			}
			if p.Ends.After(p.Deadline) {
				t.Errorf("it ends after the deadline:\n%s", text)
			}
		})
	}
}

func axisOf(values int) Axis {
	var a Axis
	for i := range values {
		a.Values = append(a.Values, TextValue(strings.Repeat("x", i+1)))
	}
	return a
}

// A large study is planned at once, not by noon: a thousand trials, in the normal
// run three hundred.
func TestPlanOfALargeStudy(t *testing.T) {
	s, o := newActor(t).study, outlook()
	s.Axes = map[string]Axis{"--a": axisOf(seeds(30, 100)), "--mem-fraction-static": axisOf(10)}
	s.Search, s.Deadline, s.Partial = Product, Deadline{In: 14 * 24 * time.Hour}, true
	p, err := NewPlan(s, o)
	if err != nil || len(p.Trials) != 1+10*seeds(30, 100) || p.Arms < 290 {
		t.Fatalf("%d trials, %d measured, %v", len(p.Trials), p.Arms, err)
	}
}

func TestMinutes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		20 * time.Second: "20s", 6 * time.Minute: "6m", 90 * time.Minute: "1h30m", 2 * time.Hour: "2h", 0: "0s", 61 * time.Second: "1m1s", 600 * time.Second: "10m",
	} {
		if got := minutes(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

// What a study names cannot be taken for a line of the plan, nor be obeyed by a
// terminal.
func TestThePlanIsNotForged(t *testing.T) {
	s := newActor(t).study
	s.Trials = []Explicit{{Name: "mine\x1b[2J\nrefused: all", Set: map[string]Value{"--a": TextValue("1")}}}
	p, err := NewPlan(s, outlook())
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Text(); !strings.Contains(text, "    1  mine[2J refused: all\n") || text != visible.Lines(text) {
		t.Errorf("the plan says %q", text)
	}
}
