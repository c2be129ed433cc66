package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sglaunch/internal/proc"
	"sglaunch/internal/rehearsal"
)

// storyLimit bounds one launch of a test; the longest takes some 20 s alone.
const storyLimit = 3 * time.Minute

// story is one launch on the stand-in and what must come of it.
type story struct {
	scenario string
	once     bool     // the first start only; later ones are healthy
	bare     bool     // without the founding patch, which all others run with
	config   string   // more of launch.toml
	flags    []string // more of the server's command line
	stop     string   // stop with SIGTERM once standard error matches this
	code     int
	tells    []string // standard error matches each of these
	hides    []string // and none of these
}

const readyLine = `sglaunch: ready after`

var stories = []story{
	{scenario: "healthy", bare: true, stop: readyLine, code: exitOK, tells: []string{`graph_capture \(`, `stopped as asked: SIGTERM`}, hides: []string{`attempt 2`}},
	{scenario: "healthy", stop: readyLine, code: exitOK, tells: []string{
		`patch flashinfer-cutlass-autotune: effective`, `restored .*model_runner.py`}, hides: []string{`degraded`}},
	{scenario: "healthy", flags: []string{"--tp", "2", "--dp", "2"}, stop: readyLine, code: exitOK},
	{scenario: "slow", stop: readyLine, code: exitOK, hides: []string{`attempt 2`}},
	{scenario: "jit-compile", stop: readyLine, code: exitOK, hides: []string{`attempt 2`}},
	{scenario: "leftovers", stop: readyLine, code: exitOK, hides: []string{`would not`}},
	{scenario: "autotune-crash", once: true, stop: readyLine, code: exitOK, tells: []string{
		`jit_compile_failed on TP\d in autotune`, `the next attempt runs without flashinfer-cutlass-autotune`, `restored .*model_runner.py`, `ready after .*degraded \(without patch`}},
	{scenario: "autotune-crash", bare: true, stop: readyLine, code: exitOK, hides: []string{`attempt 2`}}, // unpatched: no autotune, no crash
	{scenario: "rank-sigkill", once: true, stop: readyLine, code: exitOK, tells: []string{`TP3.* is gone`, `attempt 2`}},
	{scenario: "rank-sigkill-noticed", once: true, stop: readyLine, code: exitOK, tells: []string{`exit code: -9`, `attempt 2`}},
	{scenario: "rank-sigsegv", once: true, stop: readyLine, code: exitOK, tells: []string{`segfault`, `attempt 2`}},
	{scenario: "hang-at-shard", once: true, stop: readyLine, code: exitOK, tells: []string{`quiet .* in loading_weights`, `load_hang`, `attempt 2`}},
	{scenario: "hang-in-init", once: true, stop: readyLine, code: exitOK, tells: []string{`quiet .* in distributed_init`, `nccl_init_hang`}},
	{scenario: "hang-in-capture", once: true, stop: readyLine, code: exitOK, tells: []string{`quiet .* in graph_capture`, `no memory traffic`}},
	{scenario: "warmup-no-answer", once: true, stop: readyLine, code: exitOK, tells: []string{`quiet .* in warmup`}},
	{scenario: "death-after-ready", once: true, stop: `(?s)ready after.*ready after`, code: exitOK, tells: []string{`cuda_illegal_access on TP1`}},
	{scenario: "zombie-after-ready", once: true, stop: `(?s)ready after.*ready after`, code: exitOK, tells: []string{`TP0.* is gone`}},
	{scenario: "port-in-use", once: true, stop: readyLine, code: exitOK, tells: []string{`port_in_use`, `may come back`}},
	{scenario: "oom-weights", code: exitNever, tells: []string{`oom_weights on TP3`, `the next attempt runs without flashinfer-cutlass-autotune`}, hides: []string{`attempt 3`}}, // the traceback runs through the patched file
	{scenario: "oom-kv-cache", code: exitNever, tells: []string{`oom_kv_cache on TP3`}},
	{scenario: "oom-graph-capture", code: exitNever, tells: []string{`oom_graph_capture on TP3`}},
	{scenario: "oom-graph-capture", once: true, config: "[relaunch]\nfallbacks = [\"graph-capture-oom\"]\nbackoff = { initial = \"200ms\" }\n",
		stop: readyLine, code: exitOK, tells: []string{`oom_graph_capture on TP3`, `graph-capture-oom`, `degraded`}},
	{scenario: "oom-serving", once: true, stop: `(?s)ready after.*ready after`, code: exitOK, tells: []string{`oom_runtime on TP0`}},
	{scenario: "import-error", code: exitNever, tells: []string{`import_error`}, hides: []string{`attempt 2`}},
	{scenario: "bad-argument", code: exitNever, tells: []string{`bad_argument`, `unrecognized arguments`}, hides: []string{`attempt 2`}},
	{scenario: "foreign-drain", code: exitOK, tells: []string{`somebody else`}, hides: []string{`attempt 2`}},
	{scenario: "needs-input", code: exitNever, tells: []string{`needs_input`}},
	{scenario: "straggler", stop: readyLine, code: exitOK, hides: []string{`attempt 2`}},
	{scenario: "oom-autotune", once: true, stop: readyLine, code: exitOK, tells: []string{`on TP3 in autotune`, `the next attempt runs without flashinfer-cutlass-autotune`}},
	{scenario: "nccl-timeout", once: true, stop: readyLine, code: exitOK, tells: []string{`nccl_timeout`, `attempt 2`}},
	{scenario: "warmup-crash", code: exitNever, tells: []string{`triton_resources`}},
	{scenario: "detokenizer-crash", once: true, stop: readyLine, code: exitOK, tells: []string{`attempt 2`}},
	{scenario: "gpu-lost", code: exitHeld, tells: []string{`Xid 79`}},
	{scenario: "watchdog-timeout", once: true, stop: `(?s)ready after.*ready after`, code: exitOK, tells: []string{`watchdog_timeout`}},
	{scenario: "hang-after-ready", stop: readyLine, code: exitOK, hides: []string{`attempt 2`}}, // act = "start": silence after ready proves nothing
	{scenario: "zombie-noticed", once: true, stop: `(?s)ready after.*ready after`, code: exitOK, tells: []string{`attempt 2`}},
	{scenario: "corrupt-output", stop: `its answers are sound`, code: exitOK, tells: []string{
		`ready after .*; its answers are checked first`, `asked for 4 answers of at most 48 tokens \(192 in all\), 1, 3 at a time`, `its answers are wrong: 4 of 4, answer 1: one token`,
		`output_corrupt.* so the next attempt runs without flashinfer-cutlass-autotune`, `ready after .*degraded \(without patch flashinfer-cutlass-autotune`}},
	{scenario: "dull-output", stop: `no change of sglaunch's is to blame`, code: exitOK, tells: []string{`attempt 2`}, hides: []string{`attempt 3`}},
}

// Every scenario ends with the right exit code, no process alive, the patched
// package as it was, and the same bytes on standard output as in the logs.
func TestStories(t *testing.T) {
	lib, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	var names sync.Map
	for _, s := range stories {
		name := s.scenario
		if s.bare {
			name += "-unpatched"
		}
		if _, twice := names.LoadOrStore(name, true); twice {
			name += "-again"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.play(t, lib)
		})
	}
}

// Every scenario that the stand-in can play has its story; those that depend on
// the server's arguments have theirs with the tuner.
func TestEveryScenarioHasAStory(t *testing.T) {
	told := map[string]bool{}
	for _, s := range stories {
		told[s.scenario] = true
	}
	for _, s := range rehearsal.Scenarios() {
		if !told[s.Name] && !s.Tuning {
			t.Errorf("scenario %q has no story", s.Name)
		}
	}
}

func (s story) play(t *testing.T, lib string) {
	dir := t.TempDir()
	scenario, err := rehearsal.Find(s.scenario)
	if err != nil {
		t.Fatal(err)
	}
	stage, err := rehearsal.Build(filepath.Join(dir, "stage"), rehearsal.Options{Version: scenario.Version, GPUs: 4, Speed: 60, Shards: 20})
	if err != nil {
		t.Fatal(err)
	}
	stage.Lib = lib
	if s.once {
		scenario = scenario.Once()
	}
	before, err := digestOf(stage.Site)
	if err != nil {
		t.Fatal(err)
	}
	port, err := rehearsal.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	toml := filepath.Join(dir, "launch.toml")
	if err := os.WriteFile(toml, []byte(s.launchTOML()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := append(stage.Command(stage.Args(4, port)...), s.flags...)
	l := startLaunch(t, dir, stage.Env(scenario), append([]string{"run", "-c", toml, "--"}, server...)...)
	if s.stop != "" {
		l.await(s.stop)
		l.signal(syscall.SIGTERM)
	}
	code := l.wait()
	l.check(s, code)
	after, err := digestOf(stage.Site)
	if err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("the package changed:\n%s", lineDiff(before, after))
	}
	l.checkOutput(filepath.Join(dir, "state"))
	l.checkProcesses("SGLAUNCH_REHEARSAL_STATE=" + stage.State)
}

// launchTOML has limits that fit the compressed time: patience must outlast
// the longest legitimate silence of the stand-in on a busy machine.
func (s story) launchTOML() string {
	config := s.config
	if !strings.Contains(config, "[relaunch]") {
		config += "[relaunch]\nattempts = 3\nbackoff = { initial = \"200ms\" }\n"
	}
	if !s.bare {
		config += "[[patch]]\nuse = \"flashinfer-cutlass-autotune\"\n"
	}
	return `[server]
name = "story"
[ready]
check = { generations = 4, tokens = 48, batch_sizes = [1, 3], limit = "20s" }
[stop]
drain = "20s"
grace = "5s"
release = "30s"
[gpu]
sample = { starting = "200ms" }
[phases.limits]
distributed_init = { quiet = "10s" }
loading_weights = { quiet = "10s" }
graph_capture = { quiet = "10s" }
warmup = { quiet = "6s" }
` + config
}

// launched is a running sglaunch of a test.
type launched struct {
	t      *testing.T
	cmd    *exec.Cmd
	done   chan struct{} // closed when it has ended
	stdout lockedBuffer
	stderr lockedBuffer
}

func startLaunch(t *testing.T, dir string, env []string, args ...string) *launched {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startAs(t, nil, self, dir, env, args...)
}

// startAs is startLaunch by another user with another copy of this program.
func startAs(t *testing.T, user *syscall.Credential, program, dir string, env []string, args ...string) *launched {
	t.Helper()
	l := &launched{t: t, cmd: exec.Command(program, args...), done: make(chan struct{})}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	l.cmd.Dir = dir
	l.cmd.Env = append(os.Environ(), env...)
	l.cmd.Env = append(l.cmd.Env, "SGLAUNCH_STATE="+filepath.Join(dir, "state"))
	l.cmd.Stdout, l.cmd.Stderr = &l.stdout, &l.stderr
	l.cmd.WaitDelay = 5 * time.Second // a server that outlives it may hold them open
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait() // the exit code says it
		close(l.done)
	}()
	t.Cleanup(func() { _ = l.cmd.Process.Kill(); <-l.done })
	return l
}

// await waits until standard error matches.
func (l *launched) await(pattern string) {
	l.t.Helper()
	re := regexp.MustCompile(pattern)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	late := time.After(storyLimit)
	for !re.Match(l.stderr.bytes()) {
		select {
		case <-poll.C:
		case <-l.done:
			if !re.Match(l.stderr.bytes()) {
				l.t.Fatalf("it ended and standard error never matched %q:\n%s", pattern, l.stderr.bytes())
			}
		case <-late:
			l.t.Fatalf("standard error did not match %q in time:\n%s", pattern, l.stderr.bytes())
		}
	}
}

func (l *launched) signal(sig syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
}

func (l *launched) wait() int {
	l.t.Helper()
	timer := time.AfterFunc(storyLimit, func() { _ = l.cmd.Process.Signal(syscall.SIGABRT) })
	defer timer.Stop()
	<-l.done
	return l.cmd.ProcessState.ExitCode()
}

func (l *launched) check(s story, code int) {
	l.t.Helper()
	text := l.stderr.bytes()
	if code != s.code {
		l.t.Errorf("exit code %d, want %d", code, s.code)
	}
	for _, p := range s.tells {
		if !regexp.MustCompile(p).Match(text) {
			l.t.Errorf("standard error does not match %q", p)
		}
	}
	for _, p := range s.hides {
		if regexp.MustCompile(p).Match(text) {
			l.t.Errorf("standard error matches %q", p)
		}
	}
	if l.t.Failed() {
		l.t.Logf("standard error:\n%s", text)
	}
}

// checkOutput compares standard output with the raw logs of all attempts.
func (l *launched) checkOutput(state string) {
	l.t.Helper()
	logs, err := filepath.Glob(filepath.Join(state, "launches", "*", "attempts", "*", "server.log"))
	if err != nil {
		l.t.Fatal(err)
	}
	var all []byte
	for i := range logs {
		path := strings.Replace(logs[0], filepath.Join("attempts", "1"), filepath.Join("attempts", fmt.Sprint(i+1)), 1)
		data, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, data...)
	}
	if !bytes.Equal(all, l.stdout.bytes()) {
		l.t.Errorf("standard output has %d bytes, the logs %d", len(l.stdout.bytes()), len(all))
	}
}

// checkProcesses fails if any process of the stage lives.
func (l *launched) checkProcesses(marker string) {
	l.t.Helper()
	left, err := proc.WithMarker(marker)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, p := range left {
		l.t.Errorf("process %d (%s) is left", p.PID, p.Comm)
	}
}

// lockedBuffer is written by exec and read by the test at the same time.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// lineDiff shows the lines that only one of two texts has.
func lineDiff(a, b string) string {
	in := func(text string) map[string]bool {
		set := map[string]bool{}
		for _, line := range strings.Split(text, "\n") {
			set[line] = true
		}
		return set
	}
	x, y := in(a), in(b)
	var out strings.Builder
	for line := range x {
		if !y[line] {
			fmt.Fprintf(&out, "- %s\n", line)
		}
	}
	for line := range y {
		if !x[line] {
			fmt.Fprintf(&out, "+ %s\n", line)
		}
	}
	return out.String()
}
