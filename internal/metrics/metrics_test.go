package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sglaunch/internal/serve"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

var at = time.Date(2026, 2, 19, 3, 4, 5, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// busy is a launch of which everything is known.
func busy() serve.Status {
	return serve.Status{
		V: 1, Time: at.Add(90 * time.Second), Launch: "glm", ID: "x1", Attempt: 3, State: "up", Began: at, Since: at, Phase: "serving", PhaseSince: at,
		Progress: &serve.Progress{Done: 13, Total: 52, Unit: "graphs"}, Moved: &serve.Moved{Time: at}, Left: &serve.Left{Seconds: 360},
		Ready: true, Announced: true, OutputCheck: &serve.OutputCheck{State: "passed"}, Degraded: []string{"without patch p"}, Verdict: "quiet",
		Failed: &serve.Failure{Attempt: 2, Outcome: "hung", Cause: "load_hang", Phase: "loading_weights"}, Failures: map[string]int{"load_hang": 2},
		Next: &serve.Next{Time: at}, PhaseSeconds: map[string]float64{"starting": 2.5}, Output: serve.Output{Bytes: 1000, Lost: 10, Dropped: 1},
		Silent: []string{"NVML: the driver hangs"}, Restarts: 1, Processes: serve.Processes{Members: 9},
		GPUs: []serve.GPU{{Index: 1, UUID: "GPU-1", Name: "NVIDIA H200", Used: ptr(int64(1 << 30)), Total: ptr(int64(2 << 30)), Util: ptr(int64(50)), MemUtil: ptr(int64(25)), Watts: ptr(300.5)}},
	}
}

// Every metric is there where everything is known, and well named.
func TestEveryMetric(t *testing.T) {
	c := collector{busy}
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	for _, m := range table {
		if n := testutil.CollectAndCount(c, m.name); n == 0 {
			t.Errorf("%s tells nothing", m.name)
		}
		if !strings.HasPrefix(m.name, "sglaunch_") || (m.kind == counter) != strings.HasSuffix(m.name, "_total") {
			t.Errorf("%s is badly named", m.name)
		}
	}
	const want = `
# HELP sglaunch_phase_seconds How long each phase of the current attempt took, or takes so far.
# TYPE sglaunch_phase_seconds gauge
sglaunch_phase_seconds{phase="serving"} 90
sglaunch_phase_seconds{phase="starting"} 2.5
# HELP sglaunch_restarts_total Attempts after the first one.
# TYPE sglaunch_restarts_total counter
sglaunch_restarts_total 2
# HELP sglaunch_gpu_busy_ratio Share of the time in which a kernel ran, 0 to 1.
# TYPE sglaunch_gpu_busy_ratio gauge
sglaunch_gpu_busy_ratio{gpu="1",name="NVIDIA H200",uuid="GPU-1"} 0.5
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), "sglaunch_phase_seconds", "sglaunch_restarts_total", "sglaunch_gpu_busy_ratio"); err != nil {
		t.Error(err)
	}
}

// What is not known is absent, not zero; texts of others break nothing.
func TestUnknownIsAbsent(t *testing.T) {
	c := collector{func() serve.Status { return serve.Status{Launch: "a\"b\n\xff"} }}
	for _, name := range []string{"sglaunch_progress_ratio", "sglaunch_gpu_power_watts", "sglaunch_ready_in_seconds", "sglaunch_launch_start_time_seconds", "sglaunch_last_failure_info", "sglaunch_phase_seconds"} {
		if n := testutil.CollectAndCount(c, name); n != 0 {
			t.Errorf("%s is told %d times", name, n)
		}
	}
	if n := testutil.CollectAndCount(c, "sglaunch_info"); n != 1 {
		t.Errorf("sglaunch_info is told %d times", n)
	}
}

func TestHandler(t *testing.T) {
	server := httptest.NewServer(Handler(busy))
	defer server.Close()
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 200 || !strings.Contains(string(body), `sglaunch_state{state="up"} 1`) || strings.Contains(string(body), "go_goroutines") {
		t.Errorf("%d\n%s", answer.StatusCode, body)
	}
}

// docs/metrics.md is the table.
func TestDocs(t *testing.T) {
	const path = "../../docs/metrics.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), "<!-- table -->\n")
	_, after, closed := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !closed {
		t.Fatal("the page has no table")
	}
	var b strings.Builder
	fmt.Fprint(&b, before, "<!-- table -->\n| name | type | labels | |\n| --- | --- | --- | --- |\n")
	for _, m := range table {
		kind := map[prometheus.ValueType]string{gauge: "gauge", counter: "counter"}[m.kind]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, kind, strings.Join(m.labels, ", "), m.help)
	}
	fmt.Fprint(&b, "<!-- end -->\n", after)
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(b.String(), string(page)); diff != "" {
		t.Errorf("docs/metrics.md is not the table (go test -update writes it):\n%s", diff)
	}
}

// The dashboard and the pages ask for names that exist.
func TestNobodyAsksForAnotherName(t *testing.T) {
	name := regexp.MustCompile(`\bsglaunch_[a-z_]+`)
	for _, path := range []string{"../../examples/grafana/sglaunch.json", "../../docs/metrics.md"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		asked := name.FindAllString(string(data), -1)
		if len(asked) < 10 {
			t.Errorf("%s asks for %d names", path, len(asked))
		}
		for _, n := range asked {
			if !slices.ContainsFunc(table, func(m metric) bool { return m.name == n }) {
				t.Errorf("%s asks for %s", path, n)
			}
		}
	}
}

// Every panel has a query, a title and a place of its own.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../examples/grafana/sglaunch.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID        string
		Templating struct {
			List []struct{ Name, Query string }
		}
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: title, id or place is wrong", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[cell] != "" {
					t.Fatalf("%q lies over %q", p.Title, taken[cell])
				}
				taken[cell] = p.Title
			}
		}
		if len(p.Targets) == 0 {
			t.Errorf("%q asks for nothing", p.Title)
		}
		for _, q := range p.Targets {
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || !strings.Contains(q.Expr, `instance=~"$instance"`) {
				t.Errorf("%q asks %s", p.Title, q.Expr)
			}
		}
	}
}
