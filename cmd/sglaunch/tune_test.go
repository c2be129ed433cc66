package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/rehearsal"
	"sglaunch/internal/statedir"
	"sglaunch/internal/tune"
	"sglaunch/internal/tune/conduct"
	"sglaunch/supervisor"
)

// tuning is a stage with a study on it.
type tuning struct {
	standing
	stage *rehearsal.Stage
	port  int
	env   []string
	site  string // digest of the stage's packages before
}

// openStudy builds a stage and a study, whose axes and the rest come from text.
// Time runs a hundred times as fast: a start takes a second or two.
func openStudy(t *testing.T, text string, scenarios ...string) *tuning {
	t.Helper()
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	u := &tuning{standing: standing{&launched{t: t}, t.TempDir()}}
	if u.stage, err = rehearsal.Build(filepath.Join(u.dir, "stage"), rehearsal.Options{GPUs: 1, Speed: 100, Shards: 4}); err != nil {
		t.Fatal(err)
	}
	u.stage.Lib = lib
	if u.site, err = digestOf(u.stage.Site); err != nil {
		t.Fatal(err)
	}
	if u.port, err = rehearsal.FreePort(); err != nil {
		t.Fatal(err)
	}
	var all []rehearsal.Scenario
	for _, name := range scenarios {
		s, err := rehearsal.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	u.env = u.stage.Env(all...)
	command, err := json.Marshal(u.stage.Command(u.stage.Args(1, u.port)...))
	if err != nil {
		t.Fatal(err)
	}
	u.write("base.toml", fmt.Sprintf("[server]\nname = \"prod\"\ncommand = %s\n", command)+`
[ready]
output_check = "off"
[stop]
drain = "10s"
grace = "5s"
release = "20s"
[gpu]
sample = { starting = "200ms", serving = "1s" }
`)
	u.write("tune.toml", text+`
[[load]]
name = "chat"
bench = "sglang.bench_serving"
input = 128
output = 64
concurrency = [2, 16]
requests = 32
[expect]
start = "3s"
load = "2s"
release = "1s"
[gate]
soak = "2s"
[limits]
pressure = 1.0
client = 8.0
lag = 1.0
`)
	return u
}

func (u *tuning) write(name, text string) {
	u.t.Helper()
	if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// run starts the tuner on the study.
func (u *tuning) run(env ...string) {
	u.t.Helper()
	u.launched = startLaunch(u.t, u.dir, append(u.env, env...), "tune", "run", "tune.toml")
}

// status is that of the night, as a script reads it.
func (u *tuning) night() (st conduct.Status) {
	u.t.Helper()
	code, out, errout := u.sglaunch("tune", "status", "--json", filepath.Join(u.dir, "tune.toml"))
	if err := json.Unmarshal([]byte(out), &st); code != exitOK || err != nil {
		u.t.Fatalf("%d %v %s", code, err, errout)
	}
	u.fits("tune_status.json", []byte(out))
	return st
}

// records are the night so far.
func (u *tuning) records() []tune.Record {
	u.t.Helper()
	raw, err := conduct.ReadJournal(filepath.Join(u.dir, "state", "tune", "night"))
	if err != nil {
		u.t.Fatal(err)
	}
	records, err := conduct.Decode(raw)
	if err != nil {
		u.t.Fatal(err)
	}
	return records
}

// untouched: nothing of the stage lives, and its packages are what they were.
func (u *tuning) untouched() {
	u.t.Helper()
	u.checkProcesses("SGLAUNCH_REHEARSAL_STATE=" + u.stage.State)
	after, err := digestOf(u.stage.Site)
	if err != nil {
		u.t.Fatal(err)
	}
	if after != u.site {
		u.t.Errorf("the package changed:\n%s", lineDiff(u.site, after))
	}
}

const tuneHead = "name = \"night\"\nbase = \"base.toml\"\ndeadline = \"10m\"\nrepeats = 2\nfinalists = 1\n"

// checksAnswers has a few answers looked at before each launch is measured.
func (u *tuning) checksAnswers() {
	u.t.Helper()
	text, err := os.ReadFile(filepath.Join(u.dir, "base.toml"))
	if err != nil {
		u.t.Fatal(err)
	}
	u.write("base.toml", strings.Replace(string(text), `output_check = "off"`, `check = { generations = 2, tokens = 16 }`, 1))
}

const serves = `"prod" serves as process`

// A trial that runs out of memory under load: the client is ended with the
// server, what wants more memory is not tried, and the base serves in the
// morning, known to systemd.
func TestTuneFailsUnderLoadAndServes(t *testing.T) {
	t.Parallel()
	// Three requests at a time are its death: so many are the bench client's alone.
	u := openStudy(t, tuneHead+"[axis.\"--mem-fraction-static\"]\nvalues = [0.9, 0.92]\n[quality]\nanswers = 2\ntokens = 16\neval = [\"/bin/sh\", \"-c\", \"echo recall 0.5\"]\n", "tight-load")
	u.checksAnswers()
	short, err := os.MkdirTemp("", "sg") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	systemd := newManager(t, filepath.Join(short, "notify"))
	u.run("NOTIFY_SOCKET="+filepath.Join(short, "notify"), "WATCHDOG_USEC=2000000")
	u.await(`launch 2 crashed: oom_runtime`)
	if st := u.night(); !st.Running || st.Done || st.Launches < 2 || st.Failed < 1 {
		t.Errorf("while it runs the status is %+v", st)
	}
	if strings.Contains(systemd.all(), "READY=1") {
		t.Error("systemd was told of a trial that was ready")
	}
	u.await(serves)
	u.eventually("systemd is told", func() bool { return strings.Contains(systemd.all(), "READY=1") })
	u.checkVerdict(2)
	if st := u.night(); !st.Done || st.Serving != tune.BaselineID || st.Skipped != 2 || st.Winner != "" {
		t.Errorf("in the morning the status is %+v", st)
	}
	if text := string(u.stderr.bytes()); !regexp.MustCompile(`launch 1, warm-up for [2-9](\.\d)?s: the GPUs still change`).MatchString(text) {
		t.Errorf("it was not warmed up:\n%s", text)
	}
	for form, want := range map[string]string{"markdown": "oom_runtime", "csv": "--mem-fraction-static 0.9", "html": "<svg"} {
		if page := u.report(form); !strings.Contains(page, want) {
			t.Errorf("the report as %s lacks %q:\n%.2000s", form, want, page)
		}
	}
	if serving := u.status("prod"); !serving.Ready {
		t.Errorf("the base does not serve: %+v", serving)
	}
	if all := systemd.all(); strings.Contains(all, "STOPPING=1") || !strings.Contains(all, "WATCHDOG=1") || !strings.Contains(all, "STATUS=launch 2") {
		t.Errorf("systemd was told:\n%s", all)
	}
	u.stopped()
	if !strings.Contains(systemd.all(), "STOPPING=1") {
		t.Error("systemd was not told of the end")
	}
	u.untouched()
}

// stopped ends what runs, as a service manager does: in order, with status 0.
func (u *tuning) stopped() {
	u.t.Helper()
	u.signal(syscall.SIGTERM)
	if code := u.wait(); code != exitOK {
		u.t.Errorf("exit code %d:\n%s", code, u.stderr.bytes())
	}
}

// checkVerdict: the launch died under load, and within two seconds, or what a
// busy machine makes of them, its client was gone and its end was known.
func (u *tuning) checkVerdict(launch int) {
	u.t.Helper()
	var measuring, ended time.Time
	var id string
	flushed, proven, evaluated := false, false, false
	for _, r := range u.records() {
		switch b := r.Body.(type) {
		case tune.Flushed:
			flushed = flushed || b.OK
		case tune.Launched:
			if b.Launch == launch {
				id = b.ID
			}
		case tune.Answered:
			evaluated = evaluated || b.Eval != nil && b.Eval.Status == 0 && *b.Eval.Number == 0.5
			if b.Launch == 1 && (b.Sample == nil || len(b.Sample.Sums) != 2 || b.Sample.Faulty != 0) {
				u.t.Errorf("the baseline answered %+v (%s)", b.Sample, b.Undone)
			}
		case tune.Measuring:
			if b.Launch == launch {
				measuring = r.At
			}
		case tune.Measured:
			proven = proven || b.Window.Emptied && b.Window.Opening != nil && b.Window.Opening.Cached == 0
		case tune.Ended:
			if b.Caches == nil || b.Caches.Problem != "" {
				u.t.Errorf("of the caches after launch %d is known %+v", b.Launch, b.Caches)
			}
			if b.Launch == launch {
				ended = r.At
				if b.Cause != "oom_runtime" || b.Outcome != "crashed" || len(b.Excerpt) == 0 || b.Held != "" {
					u.t.Errorf("launch %d ended as %+v", launch, b)
				}
			}
		}
	}
	if !flushed {
		u.t.Error("no cache was flushed between two loads")
	}
	if !proven {
		u.t.Error("no run is proven to have begun with an empty prefix cache")
	}
	if !evaluated {
		u.t.Error("the study's own command did not look at the servers")
	}
	died := time.Time{}
	for _, e := range envelopes(u.t, filepath.Join(u.dir, "state", "launches", id, "attempts", "1", "events.jsonl")) {
		if e.Event == "verdict" {
			died = e.Time
		}
	}
	if took := ended.Sub(died); measuring.IsZero() || died.IsZero() || took < 0 || took > 6*time.Second {
		u.t.Errorf("launch %d was measured at %s, died at %s, and its end was known %s later", launch, measuring, died, took)
	}
}

// Weights that do not fit say nothing about the share of memory: the next one is
// tried as well, each once.
func TestTuneWeightsDoNotFit(t *testing.T) {
	t.Parallel()
	// Three requests at a time are its death: so many are the bench client's alone.
	u := openStudy(t, tuneHead+"[axis.\"--mem-fraction-static\"]\nvalues = [0.9, 0.92]\n", "tight-weights")
	u.run()
	u.await(serves)
	failed := map[string]int{}
	for _, r := range u.records() {
		switch b := r.Body.(type) {
		case tune.Ended:
			if b.Outcome == "crashed" {
				failed[b.Cause+" in "+b.Phase]++
			}
		case tune.Skipped:
			if b.Rule != "failed" {
				t.Errorf("skipped by %s: %s", b.Rule, b.Text)
			}
		}
	}
	if want := map[string]int{"oom_weights in loading_weights": 2}; !maps.Equal(failed, want) {
		t.Errorf("failed: %v, want %v", failed, want)
	}
	if st := u.night(); st.Skipped != 2 || st.Serving != tune.BaselineID {
		t.Errorf("the night found %+v", st)
	}
	u.stopped()
	u.untouched()
}

// The best of the night runs out of memory only in the worst case, which its first
// fresh launch has to stand: it is tried once more and does not win.
func TestTuneProbe(t *testing.T) {
	t.Parallel()
	// Its requests are long: three are sure to run at a time, which is a death.
	u := openStudy(t, tuneHead+"[axis.\"--mem-fraction-static\"]\nvalues = [0.95]\n[probe]\ninput = 2000\noutput = 400\nconcurrency = 4\nrequests = 16\n", "tight-load")
	text, err := os.ReadFile(filepath.Join(u.dir, "tune.toml"))
	if err != nil {
		t.Fatal(err)
	}
	u.write("tune.toml", strings.Replace(string(text), "[2, 16]", "[2]", 1))
	u.run()
	u.await(serves)
	measured, died := 0, 0
	probing := false
	for _, r := range u.records() {
		switch b := r.Body.(type) {
		case tune.Measuring:
			probing = b.Point.Probe
		case tune.Measured:
			if b.Point.Probe {
				t.Errorf("the probe was stood: %+v", b)
			}
			measured++
		case tune.Ended:
			if b.Outcome == "crashed" {
				if died++; !probing || b.Cause != "oom_runtime" {
					t.Errorf("launch %d died otherwise: %+v", b.Launch, b)
				}
			}
		}
	}
	if st := u.night(); died != 2 || measured < 6 || st.Winner != "" || st.Serving != tune.BaselineID {
		t.Errorf("%d measured, %d died of the probe: %+v", measured, died, st)
	}
	u.stopped()
	u.untouched()
}

// kill -9 of the tuner, in a start, in a measurement, in the morning and while it serves: the
// next one ends what was left of the trial, measures it again, and takes up what
// serves without touching it.
func TestTuneKilled(t *testing.T) {
	t.Parallel()
	u := openStudy(t, tuneHead+"promote = \"serve\"\n[axis.\"--moe-runner-backend\"]\nvalues = [\"triton\"]\n")
	kill := func(moment string) {
		t.Helper()
		u.await(moment)
		if err := u.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-u.done
	}
	u.run()
	kill(`launch 1 \(screen\): baseline`)
	u.run()
	kill(`launch 2 is ready`)
	if code, _, errout := u.sglaunch("tune", "status", filepath.Join(u.dir, "tune.toml")); code != exitOK {
		t.Errorf("status of a night whose tuner is dead: %d %s", code, errout)
	}
	u.run()
	u.await(`launch 3 is ready`)
	u.oneServer()
	u.await(`(?m)launch 3, chat@\d+: output_throughput [^;]*$`) // by the plan that the first tuner made
	u.signal(syscall.SIGINT)                                    // the trials end, the morning comes
	kill(`launch 4 \(morning\): baseline`)
	u.run()
	u.await(serves)
	launches := map[int]bool{}
	for _, r := range u.records() {
		if b, ok := r.Body.(tune.Intended); ok {
			if launches[b.Launch] {
				t.Errorf("launch %d was begun twice", b.Launch)
			}
			launches[b.Launch] = true
		}
	}
	before := u.status("prod").Processes.Server
	kill(serves)
	if now := u.status("prod"); now.Processes.Server != before || !now.Ready {
		t.Errorf("the server did not outlive the tuner: %+v", now)
	}
	u.run()
	u.await(serves)
	if now := u.status("prod").Processes.Server; now != before {
		t.Errorf("another server serves: %d, not %d", now, before)
	}
	u.oneServer()
	u.stopped()
	u.untouched()
}

// oneServer: of all that the stage has started one main process lives.
func (u *tuning) oneServer() {
	u.t.Helper()
	all, err := proc.WithMarker("SGLAUNCH_REHEARSAL_STATE=" + u.stage.State)
	if err != nil {
		u.t.Fatal(err)
	}
	servers := slices.DeleteFunc(all, func(p proc.Proc) bool {
		return !strings.Contains(proc.Command(p), "sglang.launch_server") || strings.Contains(proc.Command(p), "tune.toml")
	})
	if len(servers) != 1 {
		u.t.Errorf("%d servers live: %v", len(servers), servers)
	}
}

// (i) Whoever listens on the port of the night is left alone, and so is a launch
// that no contract gives away; a second tuner is refused.
func TestTuneRefuses(t *testing.T) {
	t.Parallel()
	u := openStudy(t, tuneHead+"[axis.\"--chunked-prefill-size\"]\nvalues = [4096]\n")
	foreign, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", u.port))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	u.run()
	if code := u.wait(); code == exitOK || !regexp.MustCompile(`cannot tune: .*nothing is ended that is not the study's own`).Match(u.stderr.bytes()) {
		t.Errorf("on a taken port it ended with %d:\n%s", code, u.stderr.bytes())
	}
	if conn, err := net.Dial("tcp", foreign.Addr().String()); err != nil {
		t.Errorf("the foreign listener is gone: %v", err)
	} else {
		conn.Close()
	}
	if len(u.records()) != 0 {
		t.Error("a night that was refused has begun")
	}
	foreign.Close()

	dir := statedir.Dir{State: filepath.Join(u.dir, "state"), Runtime: filepath.Join(u.dir, "state", "run")}
	u.launched = startLaunch(t, u.dir, u.env, "run", "-c", "base.toml")
	prod := u.launched
	u.eventually("the production launch runs", func() bool { return supervisor.Find(dir, "prod").Shim.PID != 0 })
	u.run()
	if code := u.wait(); code == exitOK || !strings.Contains(string(u.stderr.bytes()), "write [takeover] launch") {
		t.Errorf("beside a launch that runs it ended with %d:\n%s", code, u.stderr.bytes())
	}
	if supervisor.Find(dir, "prod").Shim.PID != prod.cmd.Process.Pid {
		t.Error("the production launch is gone")
	}
	prod.signal(syscall.SIGTERM)
	if code := prod.wait(); code != exitOK {
		t.Errorf("the production launch ended with %d", code)
	}
	u.untouched()
}

// report writes the night in every form, from the journal alone.
func (u *tuning) report(form string) string {
	u.t.Helper()
	code, out, errout := u.sglaunch("tune", "report", "--format", form, filepath.Join(u.dir, "tune.toml"))
	if code != exitOK {
		u.t.Fatalf("report as %s: %d %s", form, code, errout)
	}
	return out
}
