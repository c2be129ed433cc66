package bench

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// MaxBytes bounds what is read of a client's file, and of its output.
const MaxBytes = 64 << 20

// Read makes one result of the file that a run wrote, which must have been
// fresh, and of all that it printed. requested is how many requests it was asked
// for; 0 where that is not known. The file is believed; the table in the output
// is the second witness, and the only one where the client wrote no file.
//
// An error says that there is no result. A run in which every request failed is
// no error, but has no metrics.
func Read(kind string, file, output []byte, requested int) (Result, error) {
	if len(file) > MaxBytes {
		return Result{}, fmt.Errorf("cannot read the client's result: it has more than %d MiB", MaxBytes>>20)
	}
	table, printed := Table(output)
	if len(bytes.TrimSpace(file)) == 0 {
		return fromTable(table, printed, output, requested)
	}
	o, err := oneObject(file)
	if err != nil {
		return Result{}, err
	}
	r, err := o.result(kind, requested)
	if err != nil {
		return Result{}, err
	}
	if printed {
		r.compare(table)
	}
	if r.Format == OneBatch {
		r.addPrinted(output)
	}
	if r.Failed > 0 && r.Error == "" {
		r.Error = printedError(output)
	}
	return r.honest(), nil
}

func fromTable(table Result, printed bool, output []byte, requested int) (Result, error) {
	switch {
	case printed:
		table.Requested = max(requested, table.Completed+table.Failed)
		table.Failed = table.Requested - table.Completed
		table.Notes = append(table.Notes, "the client wrote no file: these are the figures of its table")
		return table.honest(), nil
	case bytes.Contains(output, []byte("Skip benchmark")):
		return Result{}, errors.New("cannot measure this point: the client skipped it, as the server cannot hold so much at once")
	}
	return Result{}, errors.New("cannot read the client's result: it wrote none")
}

// result reads an object by the client that wrote it. A command of one's own
// may write any of the forms.
func (o object) result(kind string, requested int) (Result, error) {
	if kind == OneBatch || kind == Own && o["completed"] == nil && o["batch_size"] != nil {
		return o.oneBatch()
	}
	if o["completed"] == nil {
		return Result{}, errors.New("cannot read the client's result: it does not say how many requests were completed")
	}
	r := Result{
		Format: kind, Requested: max(requested, o.count("num_prompts")), Completed: o.count("completed"),
		Metrics: o.metrics(), Error: o.firstError(), Server: o.server(),
	}
	r.Seconds, _ = o.number("duration")
	r.Generated = max(o.count("total_output_tokens"), o.count("total_output"))
	r.Requested = max(r.Requested, r.Completed+o.count("failed"))
	r.Failed = r.Requested - r.Completed
	r.Notes = o.behind(r)
	return r, nil
}

// kept is the share of the requests a second that a client was asked for which it
// has to reach, or it is said that it did not.
const kept = 0.95

// behind tells that fewer requests a second were done than were asked for. That
// may be the server's limit as well as the client's: what the client did
// meanwhile tells which.
func (o object) behind(r Result) []string {
	asked, ok := o.number("request_rate")
	done, too := r.Metrics["request_throughput"]
	if !ok || !too || r.Completed == 0 || done >= kept*asked {
		return nil
	}
	return []string{fmt.Sprintf("asked for %.4g requests/s, %.4g were done", asked, done)}
}

// oneBatch reads what bench_one_batch_server writes: one batch, its times in
// seconds.
func (o object) oneBatch() (Result, error) {
	n := o.count("batch_size")
	if n == 0 {
		return Result{}, errors.New("cannot read the client's result: it names no batch_size")
	}
	r := Result{Format: OneBatch, Requested: n, Completed: n, Metrics: o.metrics()}
	for key, metric := range map[string]string{"latency": "max_e2e_ms", "last_ttft": "max_ttft_ms"} {
		if x, ok := o.number(key); ok && x > 0 {
			r.Metrics[metric] = 1000 * x
		}
	}
	r.Seconds, _ = o.number("latency")
	r.Generated = max(o.count("total_output_tokens"), n*o.count("output_len"))
	if early := o.count("num_early_stopped"); early > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d answers stopped early", early))
	}
	return r, nil
}

// batchRow is a row that bench_one_batch_server prints. Up to 0.5.4 it writes less
// into its file than it prints; up to 0.4 with capitals.
var batchRow = regexp.MustCompile(`(?im)^(input throughput|ttft): ([0-9.]+) (?:tok/s|s)\r?$`)

// addPrinted takes from what the client printed last what its file lacks.
func (r *Result) addPrinted(output []byte) {
	printed := map[string]float64{}
	for _, m := range batchRow.FindAllSubmatch(output, -1) {
		x, err := strconv.ParseFloat(string(m[2]), 64)
		switch {
		case err != nil || x <= 0:
		case m[1][0]|0x20 == 't':
			printed["max_ttft_ms"] = 1000 * x
		default:
			printed["input_throughput"] = x
		}
	}
	for metric, x := range printed {
		if _, there := r.Metrics[metric]; !there {
			r.Metrics[metric] = x
		}
	}
}

// honest takes the figures from a run that completed nothing: a latency of 0 ms
// over no request would win every comparison.
func (r Result) honest() Result {
	if r.Completed <= 0 {
		r.Metrics = nil
	}
	return r
}

// compare holds the table against the file: both round, so they may differ in
// the last digit.
func (r *Result) compare(table Result) {
	if table.Completed != r.Completed {
		r.Notes = append(r.Notes, fmt.Sprintf("the table says %d completed requests, the file %d", table.Completed, r.Completed))
	}
	for _, metric := range Metrics() {
		inFile, ok := r.Metrics[metric]
		printed, too := table.Metrics[metric]
		if ok && too && math.Abs(inFile-printed) > 0.0051+0.001*math.Abs(inFile) {
			r.Notes = append(r.Notes, fmt.Sprintf("the table says %s %.2f, the file %.2f", metric, printed, inFile))
		}
	}
	r.Notes = slices.Clip(r.Notes)
}
