package conduct

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
)

// answering is a server that answers each prompt of a batch with a word of its own.
func answering(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Text []string `json:"text"`
	}
	if r.URL.Path != "/generate" || json.NewDecoder(r.Body).Decode(&q) != nil {
		http.NotFound(w, r)
		return
	}
	type meta struct {
		Tokens int `json:"completion_tokens"`
	}
	type reply struct {
		Text string `json:"text"`
		Meta meta   `json:"meta_info"`
	}
	var all []reply
	for _, prompt := range q.Text {
		all = append(all, reply{"the answer to " + prompt[:20], meta{20}})
	}
	_ = json.NewEncoder(w).Encode(all) // the prober sees a torn answer as one
}

// asked is an attempt of which the server alone is real.
func asked(t *testing.T, handle http.HandlerFunc) *attempt {
	t.Helper()
	study := smallStudy(nil)
	study.Quality.Answers = 10
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "launches", "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &attempt{
		site:   &site{state: statedir.Dir{State: dir}, dir: dir, folder: dir, study: study, tell: func(string) {}},
		n:      1,
		at:     serverOf(t, handle),
		server: newLaunch("tune-night", statedir.Dir{State: dir}, proc.ID{}, false),
	}
}

// The fixed prompts are asked, and the answers kept; the study's own command has
// its say, and what it leaves unsaid is no word against the server.
func TestAsk(t *testing.T) {
	at := asked(t, answering)
	shell := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for _, c := range []struct {
		name  string
		limit time.Duration
		eval  []string
		want  string
	}{
		{"sound", time.Minute, shell("echo at {port}; echo recall 0.75"), "0 recall 0.75 0.75"},
		{"not sound", time.Minute, shell("echo 3 of 9 right; exit 4"), "4 3 of 9 right <nil>"},
		{"not there", time.Minute, []string{"/nonexistent/eval"}, "-1 cannot start eval"},
		{"ended by a signal", time.Minute, shell("kill -9 $$"), "-1 eval ended with signal: killed"},
		{"ended by us", 300 * time.Millisecond, shell("trap 'exit 3' TERM; sleep 60 & wait"), "-1 eval took longer than 300ms"},
	} {
		at.study.Quality.Eval, at.study.Quality.EvalLimit = c.eval, c.limit
		r, ended := at.ask(t.Context(), tune.Ask{Launch: 1, Eval: true, Until: time.Now().Add(time.Minute)})
		if ended != nil || r.Undone != "" || r.Sample == nil || len(r.Sample.Sums) != 10 || r.Sample.Faulty != 0 || r.Sample.Tokens != 200 {
			t.Fatalf("%s: %+v, %+v", c.name, r, ended)
		}
		number := any(nil)
		if r.Eval.Number != nil {
			number = *r.Eval.Number
		}
		if got := fmt.Sprint(r.Eval.Status, " ", r.Eval.Line, " ", number); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if kept, err := os.ReadFile(filepath.Join(at.dir, r.File)); err != nil || strings.Count(string(kept), "\n") != 10 {
			t.Errorf("%s: kept are %q, %v", c.name, kept, err)
		}
	}
	if r, ended := asked(t, http.NotFound).ask(t.Context(), tune.Ask{Launch: 1, Until: time.Now().Add(time.Minute)}); ended != nil || r.Sample != nil || r.Undone == "" {
		t.Errorf("a server that is not asked so: %+v, %+v", r, ended)
	}
}

// A trial that answers wrongly is ended with that cause, and not measured.
func TestWrongAnswersEndALaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := func(t tune.Trial) bool { return strings.Contains(t.Name, "flashinfer_trtllm") }
		_, records := night(t, smallStudy(nil), func(w *world) { w.garbles = wrong })
		id := idOf(t, records, "--moe-runner-backend flashinfer_trtllm")
		launches, measured := launchesOf(records)
		if launches[id] != 1 || measured[id] != 0 {
			t.Errorf("%d launches, %d measurements of it", launches[id], measured[id])
		}
		for _, r := range records {
			if e, ok := r.Body.(tune.Ended); ok && e.Cause == "output_corrupt" {
				if e.Outcome != "unhealthy" || !strings.Contains(e.Text, "worse than the baseline's: 24 of 24") {
					t.Errorf("it ended as %+v", e)
				}
				return
			}
		}
		t.Error("no launch ended for its answers")
	})
}
