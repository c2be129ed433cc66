package bench

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"

	"sglaunch/internal/mask"
	"sglaunch/internal/visible"
)

// labels of a printed table, in lower case, and what they say. Latencies are
// read by their form.
var labels = map[string]string{
	"request throughput (req/s)":      "request_throughput",
	"request goodput (req/s)":         "request_goodput",
	"input token throughput (tok/s)":  "input_throughput",
	"output token throughput (tok/s)": "output_throughput",
	"total token throughput (tok/s)":  "total_throughput",
	"accept length":                   "accept_length",
	"cache hit rate":                  "cache_hit_rate",
}

// row is one line of a table: a label, a colon, a number. A bar may stand
// before it on the same line, so the label is looked for, not its column.
var (
	row     = regexp.MustCompile(`([A-Za-z][A-Za-z0-9 ().,/-]*): +(-?[0-9.]+(?:e[+-]?[0-9]+)?|inf|nan)\s*$`)
	latency = regexp.MustCompile(`(mean|median|std|max|p[0-9.]+) (e2e latency|e2el|ttft|tpot|itl) \(ms\)$`)
)

// failure is how vllm tells of a request that failed.
var failure = regexp.MustCompile(`(?m)^Error \d+: (.+)$`)

// printedError is the first error that a client printed; "" = none.
func printedError(output []byte) string {
	if len(output) > MaxBytes {
		output = output[len(output)-MaxBytes:]
	}
	if m := failure.FindSubmatch(output); m != nil {
		return visible.Clip(mask.String(strings.Join(strings.Fields(string(m[1])), " ")), maxText)
	}
	return ""
}

// maxLine bounds a line of a table; a bar may be longer.
const maxLine = 1024

// Table reads the table that a client printed last. ok is false where there is
// none that says how many requests were completed.
func Table(output []byte) (r Result, ok bool) {
	if len(output) > MaxBytes {
		output = output[len(output)-MaxBytes:]
	}
	r.Format, r.Metrics = "table", map[string]float64{}
	for line := range bytes.FieldsFuncSeq(output, func(c rune) bool { return c == '\n' || c == '\r' }) {
		if bytes.Contains(line, []byte("Serving Benchmark Result")) {
			r, ok = Result{Format: "table", Metrics: map[string]float64{}}, false
			continue
		}
		if label, value, is := splitRow(line); is && r.take(label, value) {
			ok = true
		}
	}
	return r.honest(), ok
}

func splitRow(line []byte) (label string, value float64, ok bool) {
	if len(line) > maxLine || !bytes.ContainsRune(line, ':') {
		return "", 0, false
	}
	m := row.FindSubmatch(line)
	if m == nil {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(string(m[2]), 64)
	return strings.ToLower(strings.TrimSpace(string(m[1]))), value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// take notes one row; it reports whether it was the number of completed
// requests, which every table has.
func (r *Result) take(label string, value float64) (completed bool) {
	switch label {
	case "successful requests":
		r.Completed = things(value)
		return true
	case "failed requests":
		r.Failed = things(value)
	case "benchmark duration (s)":
		r.Seconds = value
	case "total generated tokens":
		r.Generated = things(value)
	}
	metric, known := labels[label]
	if m := latency.FindStringSubmatch(label); m != nil {
		metric, known = canonical(m[1] + "_" + strings.ReplaceAll(m[2], " ", "_") + "_ms")
	}
	if known && value >= 0 {
		r.Metrics[metric] = value
	}
	return false
}

// things is a figure as a number of things, whatever a client printed.
func things(value float64) int { return int(min(max(value, 0), 1e12)) }
