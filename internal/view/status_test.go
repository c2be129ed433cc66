package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/serve"
)

var now = time.Date(2026, 2, 19, 3, 30, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func ptr[T any](v T) *T { return &v }

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		s    serve.Status
		want string
	}{
		"starting": {serve.Status{
			Launch: "glm", Attempt: 2, State: "starting", Since: ago(4 * time.Minute), Phase: "graph_capture", PhaseSince: ago(2 * time.Minute),
			Ranks:   map[string]string{"TP0": "graph_capture", "TP10": "graph_capture", "TP2": "graph_capture", "TP3": "weights_loaded"},
			Lagging: []string{"TP3"}, Progress: &serve.Progress{Done: 12, Total: 52, Unit: "graphs"},
			Moved: &serve.Moved{Time: ago(3 * time.Second), By: "graph-batch"}, Left: &serve.Left{Seconds: 360, Low: 300, High: 480},
			Failed:    &serve.Failure{Attempt: 1, Outcome: "hung", Cause: "load_hang", Phase: "loading_weights"},
			GPUs:      []serve.GPU{{Index: 0, Used: ptr(int64(92 << 30)), Total: ptr(int64(140 << 30)), Util: ptr(int64(100)), MemUtil: ptr(int64(0)), Watts: ptr(97.5)}, {Index: 1, Lost: true}, {Index: 2}},
			Processes: serve.Processes{Shim: 10, Supervisor: 11, Server: 12, Members: 9}, Text: "graphs 12 of 52",
		}, `glm: graph_capture 12 of 52 graphs, 23 %, ready in about 6 min (5 min to 8 min), attempt 2
  attempt    2, for 4 min
  failed     attempt 1: hung, load_hang in loading_weights
  phase      graph_capture for 2 min, last progress 3 s ago (graph-batch)
  ranks      graph_capture: TP0 TP2 TP10; weights_loaded: TP3 (behind)
  GPU 0      92.0 of 140.0 GiB, 100 % busy, no memory traffic, 98 W
  GPU 1      lost: only a reset or a reboot brings it back
  GPU 2      nothing is known
  processes  shim 10, supervisor 11, server 12 and 8 below it
  says       graphs 12 of 52
`},
		"serving": {serve.Status{
			Launch: "glm", Attempt: 1, State: "up", Since: ago(time.Hour), Phase: "serving", PhaseSince: ago(40 * time.Minute), Ready: true,
			ReadySince: ago(50 * time.Minute), Degraded: []string{"without patch p"}, Processes: serve.Processes{Shim: 10, Supervisor: 11, Server: 12},
		}, `glm: serving, degraded: without patch p
  attempt    1, ready for 50 min after 10 min
  phase      serving for 40 min
  processes  shim 10, supervisor 11, server 12
`},
		"blind": {serve.Status{
			Launch: "glm", Attempt: 1, State: serve.StateBlind, Text: "no supervisor lives", Processes: serve.Processes{Shim: 10, Server: 12, Members: 1},
		}, `glm: blind
  attempt    1
  processes  shim 10, no supervisor, server 12
  says       no supervisor lives
`},
		"waiting": {serve.Status{Launch: "glm", Attempt: 1, State: "backoff", Text: "said", Since: ago(time.Hour), Phase: "warmup", Ranks: map[string]string{"TP0": "warmup"}, Next: &serve.Next{Time: now, Reason: "the fabric may come back"}},
			`glm: backoff, attempt 2 at 03:30:00: the fabric may come back
  attempt    1
`},
		"ended": {serve.Status{Launch: "glm", Attempt: 3, State: serve.StateEnded, Exit: &serve.Exit{Time: ago(2 * time.Hour), Code: 10, Reason: "used up"}},
			`glm: ended with 10: used up
  attempt    3, ended 2.0 h ago
`},
		"ended, unread": {serve.Status{Launch: "glm", State: serve.StateEnded, Text: "sglaunch waits", Processes: serve.Processes{Shim: 10}, Exit: &serve.Exit{Time: now, Code: 10, Reason: "used up"}},
			`glm: ended with 10: used up
  processes  shim 10, no supervisor, no server
  says       sglaunch waits
`},
		"stopping": {serve.Status{Launch: "glm", State: "stopping", Stop: &serve.Stop{By: "SIGTERM"}}, "glm: stopping (SIGTERM)\n"},
	} {
		var b strings.Builder
		if err := Status(&b, c.s, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a server printed cannot forge a line of ours.
func TestNothingIsForged(t *testing.T) {
	evil := "x\x1b]0;owned\a\x1b[2J\r\nglm: ready\n"
	var b strings.Builder
	s := serve.Status{Launch: evil, Attempt: 1, State: "starting", Phase: evil, Text: evil, Degraded: []string{evil},
		Ranks: map[string]string{evil: evil}, Failed: &serve.Failure{Text: evil, Cause: evil}, Moved: &serve.Moved{By: evil}, Dir: evil}
	if err := Status(&b, s, now); err != nil {
		t.Fatal(err)
	}
	if err := Table(&b, []serve.Status{s}, now); err != nil {
		t.Fatal(err)
	}
	if err := News(&b, serve.Envelope{Text: evil, Time: now}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\a\r") || strings.Contains(b.String(), "\nglm: ready") {
		t.Errorf("%q", b.String())
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, []serve.Status{
		{Launch: "glm", Attempt: 1, State: "up", Phase: "serving", Ready: true, Since: ago(time.Hour), Processes: serve.Processes{Server: 4711}},
		{Launch: "qwen", State: "preflight"},
	}, now); err != nil {
		t.Fatal(err)
	}
	want := `name  attempt  for     server  status
glm   1        60 min  4711    serving
qwen  0        -       -       preflight
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
