package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sglaunch/internal/tune/bench"
)

// runs of a client: so many requests of so many tokens, four at a time.
const (
	requests    = 8
	concurrency = 4
	input       = 16
	output      = 12
)

// oneCase is a client against a server.
type oneCase struct {
	client string
	name   string
	server manner
	check  func(bench.Result, error) error
}

// unaware are the oldest releases of layouts: their bench_one_batch_server does not
// ask how much a server holds at once.
var unaware = []string{"0.4.6.post5", "0.5.2", "0.5.4"}

func casesOf(kind, version string) []oneCase {
	client := bench.Serving
	if kind == bench.VLLM {
		client = bench.VLLM
	}
	cases := []oneCase{
		{client, "answers all", manner{}, all(requests)},
		{client, "refuses some", manner{fails: 3}, some},
		{client, "refuses all but the first", manner{fails: 1}, none},
	}
	if kind == bench.VLLM {
		return cases
	}
	cases = append(cases, oneCase{bench.OneBatch, "answers all", manner{}, all(concurrency)})
	if slices.Contains(unaware, version) {
		return cases
	}
	return append(cases, oneCase{bench.OneBatch, "holds too few", manner{room: concurrency*(input+output) - 1}, skipped})
}

// all: every request counts, the table agrees with the file, and every metric
// that a study names by default is there.
func all(requested int) func(bench.Result, error) error {
	return func(r bench.Result, err error) error {
		switch {
		case err != nil:
			return err
		case r.Completed != requested || r.Failed != 0:
			return fmt.Errorf("%d of %d requests completed, %d failed", r.Completed, r.Requested, r.Failed)
		case len(r.Notes) > 0:
			return fmt.Errorf("%q", r.Notes)
		}
		metrics := []string{"output_throughput", "input_throughput", "max_e2e_ms"}
		if r.Format != bench.OneBatch {
			metrics = append(metrics[:1], "request_throughput", "p99_ttft_ms", "mean_tpot_ms", "mean_e2e_ms", "median_itl_ms")
		}
		for _, metric := range metrics {
			if r.Metrics[metric] <= 0 {
				return fmt.Errorf("it gives no %s", metric)
			}
		}
		if ttft := r.Metrics["p99_ttft_ms"]; r.Format != bench.OneBatch && ttft > 60_000 {
			return fmt.Errorf("p99_ttft_ms is %v: not milliseconds", ttft)
		}
		return nil
	}
}

func some(r bench.Result, err error) error {
	if err == nil && (r.Completed == 0 || r.Failed == 0 || r.Completed+r.Failed != requests) {
		return fmt.Errorf("%d requests completed, %d failed", r.Completed, r.Failed)
	}
	return err
}

// none: a run without an answer has no figures, however the client says it. A
// client that does not warm up counts the first answer.
func none(r bench.Result, err error) error {
	switch {
	case err == nil && r.Completed == 0 && len(r.Metrics) > 0:
		return fmt.Errorf("no request completed, with %v", r.Metrics)
	case err == nil && (r.Completed > 1 || r.Completed+r.Failed != requests):
		return fmt.Errorf("%d requests completed, %d failed", r.Completed, r.Failed)
	}
	return nil
}

// skipped: the client measured nothing, as the server cannot hold so many.
func skipped(r bench.Result, err error) error {
	if err == nil || !strings.Contains(err.Error(), "the client skipped it") {
		return fmt.Errorf("want a point that was skipped, got %+v and %v", r, err)
	}
	return nil
}

// clientLimit is how long a client may take.
const clientLimit = 2 * time.Minute

// try runs the client and checks what it gave, in one line.
func (c oneCase) try(ctx context.Context, dir, release string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	at := c.server.start()
	defer at.Close()
	where, err := url.Parse(at.URL)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(where.Port())
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "result.json")
	if err := os.RemoveAll(file); err != nil {
		return "", err
	}
	run := bench.Run{
		Python: filepath.Join(dir, "venv", "bin", "python"), Host: where.Hostname(), Port: port, Model: "/m",
		Concurrency: concurrency, Requests: requests, Input: input, Output: output, Seed: 1, Result: file,
	}
	argv := run.Command(c.client, more(c.client))
	if c.client == bench.VLLM {
		argv = append([]string{run.Python, "-c", vllm}, argv[1:]...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, "standins")+":"+release, "HF_HUB_OFFLINE=1")
	printed, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("the client ended with %w: %s", err, lastOf(printed))
		return err.Error(), c.check(bench.Result{}, err)
	}
	text, _ := os.ReadFile(file) // none is an answer as well
	asked := requests
	if c.client == bench.OneBatch {
		asked = concurrency
	}
	r, err := bench.Read(c.client, text, printed, asked)
	if problem := c.check(r, err); problem != nil {
		return "", fmt.Errorf("%w\n%s\n%s", problem, text, printed)
	}
	if err != nil {
		return err.Error(), nil
	}
	return fmt.Sprintf("%d of %d completed, %d metrics %s", r.Completed, r.Requested, len(r.Metrics), r.Error), nil
}

// more are arguments that keep a client off the network.
func more(client string) []string {
	switch client {
	case bench.Serving:
		return []string{"--dataset-name", "random-ids"}
	case bench.OneBatch:
		return []string{"--skip-warmup"}
	}
	return nil
}

// vllm is the command of that name, without the rest of the package.
const vllm = `import argparse, sys
from vllm.benchmarks.serve import add_cli_args, main
assert sys.argv[1:3] == ["bench", "serve"], sys.argv
parser = argparse.ArgumentParser()
add_cli_args(parser)
main(parser.parse_args(sys.argv[3:]))`

func lastOf(printed []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(printed), []byte("\n"))
	return lines[len(lines)-1]
}
