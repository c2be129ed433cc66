package history

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/phases"
)

// A text that changes shows in its file under testdata; after a look,
// UPDATE_GOLDEN=1 go test writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// night is a launch that failed once and then served, changed.
func night() Launch {
	l := fullLaunch("20261130T060000.000Z-glm-0001")
	first := Attempt{
		N: 1, Key: key, Began: day, Ended: day.Add(12 * time.Minute), Outcome: "crashed", Cause: "oom_graph_capture",
		Phase: "graph_capture", Rank: "TP3", Text: "torch.OutOfMemoryError:\x1b[2J CUDA out of memory",
		Patches: []Patch{{"autotune", "pristine", "effective", ""}},
		Phases: []Span{
			{Phase: phases.LoadingWeights, Took: 382 * time.Second, Complete: true, Quiet: 9 * time.Second, Done: 83, Total: 83, Unit: "shards"},
			{Phase: phases.GraphCapture, Took: 41 * time.Second, Done: 12, Total: 52, Unit: "graphs"},
			{Rank: "TP0", Phase: phases.LoadingWeights, Took: 380 * time.Second, Complete: true},
			{Rank: "TP3", Phase: phases.LoadingWeights, Took: 381 * time.Second, Complete: true},
			{Rank: "TP3", Phase: phases.KVCache, Took: 1200 * time.Millisecond, Complete: true},
		},
	}
	first.Key.Caches.Pages = Cold
	second := fullAttempt(2)
	second.Began, second.Ready, second.Ended = day.Add(13*time.Minute), day.Add(16*time.Minute), day.Add(26*time.Hour)
	second.Outcome, second.Cause, second.Text, second.Rank, second.Phase = "stopped", "", "", "", "serving"
	second.Phases = []Span{
		{Phase: phases.LoadingWeights, Took: 61 * time.Second, Complete: true}, {Phase: phases.GraphCapture, Took: 90 * time.Second, Complete: true},
	}
	second.Numbers = []Number{{"", "kv_tokens", 454112}, {"TP0", "avail_mem_gb", 8.4}, {"TP1", "avail_mem_gb", 8.3}}
	zero := 0
	l.Code, l.Reason, l.Ended = &zero, "stopped as asked: SIGTERM", second.Ended
	l.Attempts = []Attempt{first, second}
	return l
}

func TestTable(t *testing.T) {
	starting := Launch{ID: "20261201T090000.000Z-dev-0002", Name: "dev", Began: day.Add(27 * time.Hour), Attempts: []Attempt{
		{N: 1, Began: day.Add(27 * time.Hour), Phases: []Span{{Phase: phases.LoadingWeights, Took: 3 * time.Second}}},
	}}
	killed := starting
	killed.ID = "20261201T090000.000Z-dev-0004"
	killed.Code = new(int)
	*killed.Code = 13
	killed.Attempts = []Attempt{{N: 1, Began: day.Add(27 * time.Hour), Phase: "loading_weights"}}
	serving := starting
	serving.ID = "20261201T090000.000Z-dev-0003"
	serving.Attempts = []Attempt{{N: 1, Began: day.Add(27 * time.Hour), Ready: day.Add(28 * time.Hour), Changes: []Change{{Rung: "x"}}}}
	dead := serving
	dead.ID, dead.Killed = "20261201T090000.000Z-dev-0007", true
	dead.Attempts = []Attempt{{N: 1, Began: day.Add(27 * time.Hour), Ready: day.Add(28 * time.Hour), Phase: "serving"}}
	recovered := dead
	recovered.ID, recovered.Killed = "20261201T090000.000Z-dev-0008", false
	recovered.Code, recovered.Reason = new(int), KilledReason
	*recovered.Code = 10
	ended := func(id, outcome string) Launch {
		l := starting
		l.ID, l.Code = "20261201T090000.000Z-dev-"+id, new(int)
		l.Attempts = []Attempt{{N: 1, Began: l.Began, Outcome: outcome}}
		return l
	}
	var b strings.Builder
	if err := WriteTable(&b, []Launch{
		recovered, dead, ended("0006", "stopped"), ended("0005", "hung"), serving, starting, killed, night(), {ID: "20261129T090000.000Z-x-0001"},
	}); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", b.String())
}

func TestDetail(t *testing.T) {
	var b strings.Builder
	if err := WriteDetail(&b, night()); err != nil {
		t.Fatal(err)
	}
	golden(t, "detail.txt", b.String())
}

// Nothing known is nothing said, without a zero date or a panic.
func TestDetailOfNothing(t *testing.T) {
	var b strings.Builder
	if err := WriteDetail(&b, Launch{ID: "1", Attempts: []Attempt{{N: 1}}}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "launch     1\nbegan      -\n\nattempt 1  began -\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// A launch that was stopped while its disk failed was not killed.
func TestOutcomeThatTheDiskLost(t *testing.T) {
	l := Launch{Code: new(int), Reason: "stopped as asked: SIGTERM", Attempts: []Attempt{{N: 1, Phase: "starting"}}}
	if got := l.outcome(); got != "stopped (exit 0)" {
		t.Errorf("it is told as %q", got)
	}
}
