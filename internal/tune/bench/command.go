package bench

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// Run says what one run of a client is to do.
type Run struct {
	Python      string // interpreter of the server's environment; for sglang's clients
	Host        string
	Port        int
	Model       string // as the server was given it
	Concurrency int
	Requests    int
	Input       int // tokens of a prompt
	Output      int // tokens of an answer
	Seed        int
	Result      string // path of the fresh file for the result
}

// Command is the usual command of a client, with more arguments after it. Each
// has a fixed seed and fixed lengths, so that two launches answer the same.
func (r Run) Command(kind string, more []string) []string {
	var argv []string
	n := strconv.Itoa
	switch kind {
	case Serving:
		argv = []string{r.Python, "-m", Serving, "--backend", "sglang", "--host", r.Host, "--port", n(r.Port),
			"--num-prompts", n(r.Requests), "--max-concurrency", n(r.Concurrency), "--seed", n(r.Seed), "--output-file", r.Result}
		argv = append(argv, r.random(more, "--random-input-len", "--random-output-len", "--random-range-ratio", "1.0")...)
	case OneBatch:
		argv = []string{r.Python, "-m", OneBatch, "--model", "None", "--base-url", r.url(), "--batch-size", n(r.Concurrency),
			"--input-len", n(r.Input), "--output-len", n(r.Output), "--result-filename", r.Result}
	case VLLM:
		argv = []string{"vllm", "bench", "serve", "--backend", "openai", "--base-url", r.url(), "--model", r.Model,
			"--num-prompts", n(r.Requests), "--max-concurrency", n(r.Concurrency), "--seed", n(r.Seed), "--ignore-eos",
			"--save-result", "--result-dir", filepath.Dir(r.Result), "--result-filename", filepath.Base(r.Result),
			"--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "90,95,99"}
		argv = append(argv, r.random(more, "--random-input-len", "--random-output-len")...)
	}
	return append(argv, more...)
}

// random are the arguments of random prompts, unless another data set is named.
// SGLang has two such sets: "random", whose words are those of ShareGPT, which
// the client downloads, and "random-ids", which needs nothing.
func (r Run) random(more []string, input, output string, rest ...string) []string {
	set := dataset(more)
	if set != "" && !strings.HasPrefix(set, "random") {
		return nil
	}
	argv := append([]string{input, strconv.Itoa(r.Input), output, strconv.Itoa(r.Output)}, rest...)
	if set == "" {
		argv = append([]string{"--dataset-name", "random"}, argv...)
	}
	return argv
}

// dataset is the data set that arguments name; "" = none.
func dataset(args []string) string {
	const flag = "--dataset-name"
	for i, arg := range args {
		if value, is := strings.CutPrefix(arg, flag+"="); is {
			return value
		}
		if arg == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

func (r Run) url() string { return "http://" + net.JoinHostPort(r.Host, strconv.Itoa(r.Port)) }

// Fill replaces the placeholders {host}, {port}, {model}, {concurrency},
// {requests}, {input}, {output}, {seed}, {result} and {python} in a command of
// one's own. Other braces are left alone.
func (r Run) Fill(argv []string) []string {
	n := strconv.Itoa
	fill := strings.NewReplacer("{host}", r.Host, "{port}", n(r.Port), "{model}", r.Model, "{concurrency}", n(r.Concurrency),
		"{requests}", n(r.Requests), "{input}", n(r.Input), "{output}", n(r.Output), "{seed}", n(r.Seed),
		"{result}", r.Result, "{python}", r.Python)
	filled := make([]string, len(argv))
	for i, arg := range argv {
		filled[i] = fill.Replace(arg)
	}
	return filled
}
