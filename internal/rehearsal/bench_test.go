package rehearsal

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Three requests at a time are too many for a pool that leaves nothing free.
func failsUnderLoad(t *testing.T, p *server) {
	var asked sync.WaitGroup
	defer asked.Wait()
	for range 3 {
		asked.Go(func() { _, _ = p.tryPost("/generate", `{"text": "long", "sampling_params": {"max_new_tokens": 3000}}`) })
	}
	p.sees("torch.OutOfMemoryError: CUDA out of memory")
	if how := p.ends(); how != "signal: killed" {
		t.Errorf("ended by %q", how)
	}
}

// A pool that leaves enough free serves under the same load.
func TestTightOnlyAboveItsBound(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 100)
	var tight []Scenario
	for _, name := range []string{"tight-weights", "tight-capture", "tight-load"} {
		sc, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		tight = append(tight, sc)
	}
	p := play(t, s, append(launchArgs(s, 1), "--mem-fraction-static", "0.89"), tight...)
	p.sees(ready)
	out, err := s.bench(t, p.port, "", "--num-prompts", "64", "--max-concurrency", "8")
	if err != nil || !strings.Contains(out, "Successful requests:                     64") {
		t.Errorf("%v\n%s", err, out)
	}
}

// bench runs the client of the stage against a port; trouble is what spoils it.
func (s *Stage) bench(t *testing.T, port int, trouble string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.Python, append([]string{"-m", "sglang.bench_serving", "--port", fmt.Sprint(port)}, args...)...)
	cmd.Env = append(append(os.Environ(), s.Env()...), "SGLAUNCH_REHEARSAL_BENCH="+trouble, "OPENAI_API_KEY=secret")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The client's record, its table and its traps.
func TestBenchServing(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 400)
	p := play(t, s, append(launchArgs(s, 1), "--api-key", "secret"))
	p.sees(ready)
	file := filepath.Join(t.TempDir(), "run.jsonl")
	args := []string{"--num-prompts", "48", "--max-concurrency", "16", "--output-file", file}

	out, err := s.bench(t, p.port, "", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"\r100%|##########| 48/48 [", "= Serving Benchmark Result =", "Successful requests:                     48 ", "Max request concurrency:                 16"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	record := linesOf(t, file)
	if len(record) != 1 || !strings.Contains(record[0], `"request_rate": Infinity`) || !strings.Contains(record[0], `"server_info": {"model_path"`) {
		t.Errorf("the record is %.200q", record)
	}
	if got := figure(t, record[0], "output_throughput"); math.Abs(got-6000*16./40) > 1 { // the known function, without noise
		t.Errorf("%v tokens per second", got)
	}

	if out, err = s.bench(t, p.port, "all-failed", args...); err != nil {
		t.Errorf("all failed, and the exit status is to be 0: %v\n%s", err, out)
	}
	record = linesOf(t, file)
	if len(record) != 2 || figure(t, record[1], "mean_ttft_ms") != 0 || !strings.Contains(record[1], `"mean_e2e_latency_ms": NaN`) {
		t.Errorf("all failed: %.300q", record)
	}
	if out, err = s.bench(t, p.port, "no-record", args...); err != nil || len(linesOf(t, file)) != 2 {
		t.Errorf("no record: %v\n%s", err, out)
	}
	if _, err = s.bench(t, p.port, "fail=0.25", args...); err != nil || figure(t, linesOf(t, file)[2], "completed") != 36 {
		t.Errorf("a quarter failed: %v", err)
	}
}

// The same seed gives the same figures, another gives others; a drift goes with
// the starts of the server.
func TestNoiseIsRepeatable(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 400)
	p := play(t, s, launchArgs(s, 1))
	p.sees(ready)
	runs := filepath.Join(s.State, "runs")
	measure := func(trouble string) float64 {
		if err := os.RemoveAll(runs); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "run.jsonl")
		if out, err := s.bench(t, p.port, trouble, "--num-prompts", "8", "--max-concurrency", "4", "--output-file", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return figure(t, linesOf(t, file)[0], "output_throughput")
	}
	quiet, noisy := measure(""), measure("noise=0.05,seed=3")
	if again := measure("noise=0.05,seed=3"); again != noisy || noisy == quiet {
		t.Errorf("without noise %v, with it %v and %v", quiet, noisy, again)
	}
	if other := measure("noise=0.05,seed=4"); other == noisy {
		t.Error("another seed gives the same figure")
	}
	if err := os.WriteFile(filepath.Join(s.State, "starts"), []byte("1\n1\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := measure("drift=-0.1"); math.Abs(third/quiet-0.81) > 1e-9 {
		t.Errorf("the third start has %v of the first's speed", third/quiet)
	}
}

// A client that stalls does so in the middle of its bar, and for ever.
func TestBenchStalls(t *testing.T) {
	t.Parallel()
	s := stageFor(t, "", 400)
	p := play(t, s, launchArgs(s, 1))
	p.sees(ready)
	env := append(s.Env(), "SGLAUNCH_REHEARSAL_BENCH=stall")
	c := start(t, p.port, []string{s.Python, "-m", "sglang.bench_serving", "--port", fmt.Sprint(p.port), "--num-prompts", "20"}, env)
	c.sees("\r 30%|###       | 6/20 [")
	c.fallsSilent(700 * time.Millisecond)
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// figure takes one number out of a record, which need not be JSON.
func figure(t *testing.T, record, name string) (v float64) {
	t.Helper()
	found := regexp.MustCompile(`"` + name + `": ([0-9.e+-]+)`).FindStringSubmatch(record)
	if found == nil {
		t.Fatalf("no %s in %.200s", name, record)
	}
	if _, err := fmt.Sscan(found[1], &v); err != nil {
		t.Fatal(err)
	}
	return v
}
