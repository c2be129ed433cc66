package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sglaunch/internal/probe/answers"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/bench"
	"sglaunch/internal/visible"
)

var update = flag.Bool("update", false, "write the golden reports anew")

// rates is what the client reports of each trial; what is absent fails.
var rates = map[string]float64{
	"baseline": 1000, "--chunked-prefill-size 8192": 1080, "--mem-fraction-static 0.9": 1010, "--enable-<b>x</b>": 985,
}

// summary plays a night on a known machine, up to so many launches.
func summary(t *testing.T, launches int) tune.Summary {
	t.Helper()
	s := tune.DefaultStudy()
	s.Name, s.Base, s.Notes = "glm-5", "launch.toml", "After the upgrade to 0.5.9 | see <ticket>."
	s.Deadline = tune.Deadline{In: 9 * time.Hour}
	s.Loads = []tune.Load{{Name: "chat", Bench: bench.Serving, Input: 1024, Output: 256, Concurrency: []int{8, 32}}}
	s.Axes = map[string]tune.Axis{
		"--chunked-prefill-size": {Values: []tune.Value{tune.TextValue("8192")}},
		"--mem-fraction-static":  {Values: []tune.Value{tune.TextValue("0.9"), tune.TextValue("0.94"), tune.TextValue("0.96")}},
		"--enable-<b>x</b>":      {Values: []tune.Value{{Kind: tune.Alone}}},
		"--moe-runner-backend":   {Values: []tune.Value{tune.TextValue("triton")}},
	}
	now := time.Date(2026, 2, 19, 22, 0, 0, 0, time.UTC)
	plan, err := tune.NewPlan(s, tune.Outlook{Now: now, Zone: time.UTC, Facts: tune.Facts{
		Versions: map[string]string{"sglang": "0.5.9", "torch": "2.9.1"}, Driver: "580.95", GPUs: []string{"GPU-a", "GPU-b"}, Model: "/models/glm 5 0123456789abcdef",
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := player{t: t, n: &tune.Night{}, now: now, names: map[string]string{}, noise: []float64{0, 0.004, -0.003, 0.002, -0.005}}
	for _, trial := range plan.Trials {
		p.names[trial.ID] = trial.Name
	}
	p.write(plan.Planned)
	for p.step() && p.launches <= launches {
	}
	return p.n.Summary()
}

type player struct {
	t        *testing.T
	n        *tune.Night
	now      time.Time
	names    map[string]string
	noise    []float64
	launches int
	trial    string
	flushed  bool
}

func (p *player) write(b tune.Body) {
	p.t.Helper()
	if err := p.n.Add(tune.Record{Seq: p.n.Seq(), At: p.now, Body: b}); err != nil {
		p.t.Fatal(err)
	}
}

// step does one action; it reports whether the night goes on.
func (p *player) step() bool {
	switch do := p.n.Next(p.now).(type) {
	case tune.Note:
		p.write(do.Body)
	case tune.Settle:
		p.now = p.now.Add(time.Minute)
		p.write(tune.Settled{After: do.After, OK: true})
	case tune.Wait:
		p.now = do.Until
	case tune.Launch:
		p.launch(do)
	case tune.Ask:
		p.now = p.now.Add(20 * time.Second)
		p.write(tune.Answered{Launch: do.Launch, Took: 20 * time.Second, Sample: p.sample()})
	case tune.Flush:
		p.write(tune.Flushed{Launch: do.Launch, OK: true})
		p.flushed = true
	case tune.Measure:
		if do.Point.Soak {
			began := p.now
			p.now = p.now.Add(3 * time.Minute)
			p.write(tune.Measured{Launch: do.Launch, Point: do.Point, Began: began, Took: 3 * time.Minute, Result: bench.Result{Notes: []string{"the GPUs are warm, 61 °C at 1965 MHz"}}})
			return true
		}
		rate := rates[p.trial] * (1 + p.noise[p.launches%len(p.noise)]) * (0.5 + float64(do.Point.Concurrency)/64)
		p.now = p.now.Add(2 * time.Minute)
		emptied := p.flushed
		p.flushed = false
		p.write(tune.Measured{Launch: do.Launch, Point: do.Point, Began: p.now.Add(-2 * time.Minute), Took: 2 * time.Minute, Result: bench.Result{
			Requested: 100, Completed: 100, Seconds: 100, Generated: int(100 * rate), Metrics: map[string]float64{"output_throughput": rate, "p99_ttft_ms": 1e5 / rate, "mean_tpot_ms": 1000 * float64(do.Point.Concurrency) / rate},
		}, File: "launches/1/chat@8.jsonl", Window: tune.Window{Celsius: 60 + float64(p.launches%4), ClockMHz: 1965, Watts: 3200, LimitWatts: 4000, PState: "P0", Joules: 320_000, PowerCap: powerCap(p.trial), Emptied: emptied, Opening: &tune.Opening{Computed: 1024}}})
	case tune.Stop:
		p.write(tune.Ended{Launch: do.Launch, Outcome: "stopped", Caches: p.caches(true)})
	case tune.HandOver:
		p.write(tune.Serving(do))
	case tune.End:
		return false
	}
	return true
}

// caches are those of a trial: the first launch compiles, and one of the trials finds
// other tactics than the baseline.
func (p *player) caches(after bool) *tune.Caches {
	c := &tune.Caches{Folders: []tune.CacheFolder{{Path: "/caches/triton", Files: 3, Bytes: 4096, Digest: "d1"}}, Tactics: map[string]string{"rank_tp0.json": "t1", "rank_tp1.json": "t1"}}
	if p.launches == 1 && !after {
		c.Folders[0] = tune.CacheFolder{Path: "/caches/triton", Digest: "d0"}
	}
	if strings.Contains(p.trial, "chunked") {
		c.Tactics["rank_tp1.json"] = "t2"
	}
	return c
}

// sample is what a trial answers: of four prompts the last is answered otherwise by
// all but the baseline, which now and then differs as well.
func (p *player) sample() *answers.Sample {
	s := answers.Sample{Figures: answers.Figures{Answers: 4, Asked: 256, Tokens: 800, Variety: 0.7}, Sums: []string{"a", "b", "c", "d"}}
	if p.trial != "baseline" || p.launches == 8 {
		s.Sums[3], s.Tokens = "e", 780
	}
	return &s
}

// A note on a run is told beside it, with those that do not fit counted.
func TestNotesAreTold(t *testing.T) {
	s := summary(t, 1000)
	s.Launches[1].Measured[0].Result.Notes = []string{"asked for 16 requests/s, 9.5 were done", "the table says x", "the table says y"}
	var b bytes.Buffer
	if err := Markdown(&b, s); err != nil || !strings.Contains(b.String(), "| counts; asked for 16 requests/s, 9.5 were done, and 2 more notes |") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func powerCap(trial string) float64 {
	if trial == "--chunked-prefill-size 8192" {
		return 0.75
	}
	return 0.4
}

func (p *player) launch(do tune.Launch) {
	p.launches++
	p.trial = p.names[do.Slot.Trial]
	p.write(do.Intended)
	p.write(tune.Launched{Launch: do.Intended.Launch, Caches: p.caches(false), Command: []string{"python", "-m", "sglang.launch_server", "--chat-template", "it's {{ x }}", p.trial}})
	if _, good := rates[p.trial]; !good {
		p.now = p.now.Add(3 * time.Minute)
		p.write(tune.Ended{Launch: do.Intended.Launch, Outcome: "crashed", Cause: "oom_graph_capture", Phase: "graph_capture",
			Text: "CUDA out of memory. Tried to allocate 2.00 GiB", Excerpt: []string{"Capture cuda graph begin", "</pre><script>alert(1)</script>"}, Log: "server.log"})
		return
	}
	p.now = p.now.Add(6 * time.Minute)
	p.write(tune.Ready{Launch: do.Intended.Launch, Took: 6 * time.Minute})
}

func TestGolden(t *testing.T) {
	for name, launches := range map[string]int{"whole": 1000, "running": 4, "begun": 0} {
		s := summary(t, launches)
		for ext, write := range map[string]func(io.Writer, tune.Summary) error{".md": Markdown, ".csv": CSV, ".html": HTML} {
			var b bytes.Buffer
			if err := write(&b, s); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+ext), b.Bytes())
		}
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, diff)
	}
}

// TestThePageStandsAlone: no script, nothing of the network, whole markup, and
// nothing of a log is taken for markup.
func TestThePageStandsAlone(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, summary(t, 1000)); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, bad := range []string{"<script", "http://", "https://", "<b>x</b>", "url(", "@import", "<ticket>", "ZgotmplZ"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the markup is broken: %v", err)
		}
	}
}

// evil are words of a server that want to be obeyed: by a terminal, by a reader who
// trusts our lines, by a spreadsheet.
const evil = "=HYPERLINK(\"x\")\x1b[2J\r\nsglaunch: ready\u202e\x9b1m"

// A command is one line, which bash reads as what it was.
func TestCommandIsPasted(t *testing.T) {
	argv := []string{"printf", "%s|", "plain", "", "it's {{ x }}", "two\nlines, it's \x1b[1m \\ \"x\" \u202e", "\xff"}
	line := command(argv)
	if line != visible.Line(line) {
		t.Errorf("it cannot be seen: %q", line)
	}
	got, err := exec.Command("bash", "-c", "LC_ALL=C.UTF-8; "+line).Output()
	if want := strings.Join(argv[2:], "|") + "|"; err != nil || string(got) != want {
		t.Errorf("%s gives %q, want %q: %v", line, got, want, err)
	}
}

// Whatever others wrote, a report holds lines of ours, of what can be seen.
func TestNothingInAReportIsObeyed(t *testing.T) {
	s := summary(t, 1000)
	s.Study.Notes, s.Facts.Model, s.Verdict.Text, s.Labels = evil, evil+" sum", evil, []string{evil}
	for i := range s.Trials {
		s.Trials[i].Name = evil
		if s.Trials[i].Skipped != nil {
			s.Trials[i].Skipped.Text = evil
		}
	}
	for i := range s.Launches {
		l := &s.Launches[i]
		l.Trial.Name, l.Why, l.Command = evil, evil, []string{evil}
		if l.Ended != nil {
			l.Ended.Text, l.Ended.Log, l.Ended.Excerpt = evil, evil, []string{evil}
		}
		for j := range l.Measured {
			m := &l.Measured[j]
			m.Problem, m.File, m.Result.Notes = evil, evil, []string{evil}
		}
	}
	for name, write := range map[string]func(io.Writer, tune.Summary) error{"Markdown": Markdown, "CSV": CSV, "HTML": HTML} {
		var b bytes.Buffer
		if err := write(&b, s); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			text := strings.TrimSuffix(line, "\n")
			if text != visible.Line(text) {
				t.Errorf("%s holds %q", name, text)
			}
			if strings.HasPrefix(text, "sglaunch:") && name != "HTML" {
				t.Errorf("%s has a line that is not its own: %s", name, text)
			}
		}
		if name == "CSV" {
			noFormulas(t, &b)
		}
	}
}

func TestCSVIsRead(t *testing.T) {
	s := summary(t, 1000)
	s.Launches[1].Measured[0].Result.Metrics["mean_tpot_ms"] = -1.5 // a number is a number
	var b bytes.Buffer
	if err := CSV(&b, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), ",-1.5,") {
		t.Error("a number below zero is not one any more")
	}
	noFormulas(t, &b)
}

// noFormulas reads a table as a spreadsheet does.
func noFormulas(t *testing.T, b io.Reader) {
	t.Helper()
	rows, err := csv.NewReader(b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		for _, c := range row {
			_, err := strconv.ParseFloat(c, 64)
			if word := strings.TrimSpace(c); err != nil && word != "" && strings.ContainsRune("=+-@", rune(word[0])) {
				t.Errorf("row %d: a spreadsheet takes %q for a formula", i+1, c)
			}
		}
	}
}
