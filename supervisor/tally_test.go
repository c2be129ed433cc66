package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/serve"
	"sglaunch/internal/statedir"
)

// A supervisor that takes over counts on where the one before stopped.
func TestTallyGoesOn(t *testing.T) {
	attempt := func(n int, events ...string) statedir.Attempt {
		a := statedir.Attempt{N: n, Path: t.TempDir()}
		if err := os.WriteFile(a.Events(), []byte(strings.Join(events, "\n")), statedir.FileMode); err != nil {
			t.Fatal(err)
		}
		return a
	}
	ended := `{"v":1,"attempt":1,"event":"attempt_ended","fields":{"outcome":"hung","cause":"load_hang","phase":"loading_weights"}}`
	first := attempt(1, `{"v":1,"attempt":1,"event":"checked","fields":{"output_check":"corrupt"}}`, ended)
	var failing, serving tally
	failing.again([]statedir.Attempt{first, attempt(2, `{"event":"phase","fields":{"before":"starting","seconds":2.5}}`, `{"event":"ph`)})
	serving.again([]statedir.Attempt{first, attempt(2, `{"event":"checked","fields":{"output_check":"passed"}}`, `{"event":"announced"}`)})

	var st serve.Status
	failing.fill(&st)
	want := serve.Status{
		Failed:   &serve.Failure{Attempt: 1, Outcome: "hung", Cause: "load_hang", Phase: "loading_weights"},
		Failures: map[string]int{"load_hang": 1}, PhaseSeconds: map[string]float64{"starting": 2.5},
	}
	if diff := cmp.Diff(want, st); diff != "" || !failing.failing {
		t.Errorf("failing is %v; %s", failing.failing, diff)
	}
	if serving.failing || serving.failures["load_hang"] != 1 || serving.check == nil || serving.check.State != "passed" {
		t.Errorf("%+v", serving)
	}
}
