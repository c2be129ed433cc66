package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sglaunch/internal/rehearsal"
)

// bench is a machine on which the same server is launched again and again.
type bench struct {
	t     *testing.T
	dir   string
	stage *rehearsal.Stage
	toml  string
	argv  []string
	env   []string // of each launch, beside the stage's
}

func newBench(t *testing.T, config string) *bench {
	t.Helper()
	return newBenchOf(t, config, "")
}

// newBenchOf has a release of its own; "" is the usual one.
func newBenchOf(t *testing.T, config, version string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	b.stage, err = rehearsal.Build(filepath.Join(b.dir, "stage"), rehearsal.Options{Version: version, GPUs: 1, Speed: 60, Shards: 20})
	if err != nil {
		t.Fatal(err)
	}
	b.stage.Lib = lib
	b.toml = filepath.Join(b.dir, "launch.toml")
	if err := os.WriteFile(b.toml, []byte(story{config: config}.launchTOML()), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := rehearsal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b.argv = b.stage.Command(b.stage.Args(1, port)...)
	return b
}

// launch starts the server once more.
func (b *bench) launch(scenario string) *launched {
	b.t.Helper()
	s, err := rehearsal.Find(scenario)
	if err != nil {
		b.t.Fatal(err)
	}
	env := append(b.stage.Env(s), "HOME="+b.dir) // caches of this test alone
	env = append(env, b.env...)
	return startLaunch(b.t, b.dir, env, append([]string{"run", "-c", b.toml, "--"}, b.argv...)...)
}

// ask runs a command of sglaunch that ends by itself.
func (b *bench) ask(args ...string) string {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), "SGLAUNCH_STATE="+filepath.Join(b.dir, "state"))
	out, err := c.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return string(out)
}

// Three healthy launches teach the fourth how long it takes; the history shows
// them all, and keeps no more folders than it was told to.
func TestThreeLaunchesTeachTheFourth(t *testing.T) {
	t.Parallel()
	b := newBench(t, "[log]\nkeep = { launches = 2 }\n")
	b.stage.Speed = 15 // nothing is told of times that nobody waits for
	var last string
	for range 4 {
		l := b.launch("healthy")
		l.await(readyLine)
		l.signal(syscall.SIGTERM)
		if code := l.wait(); code != exitOK {
			t.Fatalf("exit code %d:\n%s", code, l.stderr.bytes())
		}
		last = string(l.stderr.bytes())
		if strings.Contains(last, "the history") {
			t.Errorf("the history complains:\n%s", last)
		}
	}
	for _, want := range []string{
		`server is process \d+; ready in about \d+ s, a start usually takes [\d to]+ s here`,
		`graph_capture \(.*\); .*ready in about \d+ s`,
	} {
		if !regexp.MustCompile(want).MatchString(last) {
			t.Errorf("the fourth launch does not say %q:\n%s", want, last)
		}
	}
	table := b.ask("history", "story")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	for _, row := range rows[1:] {
		if !regexp.MustCompile(`story +1 +[\d.]+s .* \S+/cold +stopped \(exit 0\)`).MatchString(row) {
			t.Errorf("the history shows %q", row)
		}
	}
	if len(rows) != 5 {
		t.Errorf("the history shows %d launches, want 4:\n%s", len(rows)-1, table)
	}
	newest := strings.Fields(rows[1])
	detail := b.ask("history", newest[len(newest)-1])
	for _, want := range []string{`version +` + regexp.QuoteMeta(b.stage.Version), `loading_weights +[\d.]+s +[\d.]+s +20/20 shards`, `caches +checkpoint \w+, kernels cold`} {
		if !regexp.MustCompile(want).MatchString(detail) {
			t.Errorf("the detail does not match %q:\n%s", want, detail)
		}
	}
	folders, err := filepath.Glob(filepath.Join(b.dir, "state", "launches", "*"))
	if err != nil || len(folders) != 2 {
		t.Errorf("%d folders are kept, want 2 (%v)", len(folders), err)
	}
}

// A crash loop that gave up leaves its budget to the next start of the same
// server, as a service manager makes it.
func TestACrashLoopOutlivesItsService(t *testing.T) {
	t.Parallel()
	const attempts = 2
	b := newBench(t, "[relaunch]\nattempts = "+strconv.Itoa(attempts)+"\nbackoff = { initial = \"100ms\" }\n")
	for restart, tried := range []int{attempts, 1, 1} {
		l := b.launch("rank-sigkill")
		if code := l.wait(); code != exitLater {
			t.Fatalf("exit code %d:\n%s", code, l.stderr.bytes())
		}
		text := string(l.stderr.bytes())
		if got := strings.Count(text, ": server is process"); got != tried {
			t.Errorf("restart %d: %d servers, want %d:\n%s", restart, got, tried, text)
		}
		if want := strconv.Itoa(attempts+restart) + " launches in 2h0m0s are used up"; !strings.Contains(text, want) {
			t.Errorf("restart %d does not say %q:\n%s", restart, want, text)
		}
	}
}
