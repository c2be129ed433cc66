package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serving is a line as SGLang's bench_serving appends it.
const serving = `{"tag": null, "backend": "sglang", "request_rate": Infinity, "max_concurrency": 32, "server_info": {"model_path": "/m", "mem_fraction_static": 0.88, "disable_radix_cache": true, "api_key": "sk-1", "internal_states": [{}]}, "duration": 12.5, "completed": 100, "total_output_tokens": 25600, "request_throughput": 8.0, "output_throughput": 2048.123, "total_throughput": 10240.0, "mean_e2e_latency_ms": 900.5, "p99_ttft_ms": 120.25, "mean_tpot_ms": 11.5, "std_itl_ms": NaN, "concurrency": 31.2, "accept_length": null, "errors": ["", "boom Infinity", ""]}
`

// table is what it prints with it, among bars.
const table = "100%|##########| 100/100 [00:12<00:00,  8.00it/s]\r\n" + `
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    inf
Max reqeuest concurrency:                32
Successful requests:                     100
Benchmark duration (s):                  12.50
Total generated tokens:                  25600
Total generated tokens (retokenized):    25590
Request throughput (req/s):              8.00
Output token throughput (tok/s):         2048.12
Total Token throughput (tok/s):          10240.00
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   900.50
---------------Time to First Token----------------
P99 TTFT (ms):                           120.25
==================================================
`

func TestRead(t *testing.T) {
	want := Result{
		Format: Serving, Requested: 100, Completed: 100, Seconds: 12.5, Generated: 25600, Error: "boom Infinity",
		Metrics: map[string]float64{
			"request_throughput": 8, "output_throughput": 2048.123, "total_throughput": 10240,
			"mean_e2e_ms": 900.5, "p99_ttft_ms": 120.25, "mean_tpot_ms": 11.5,
		},
		Server: map[string]string{"model_path": "/m", "mem_fraction_static": "0.88", "disable_radix_cache": "true", "api_key": "****"},
	}
	with := func(change func(*Result)) Result {
		r := want
		change(&r)
		return r
	}
	tests := []struct {
		name         string
		kind         string
		file, output string
		requested    int
		want         Result
	}{
		{"infinity, NaN and null", Serving, serving, table, 100, want},
		{"fewer than were asked for", Serving, serving, "", 128, with(func(r *Result) { r.Requested, r.Failed = 128, 28 })},
		{"the table disagrees", Serving, serving, strings.Replace(table, "2048.12", "1048.12", 1), 100, with(func(r *Result) {
			r.Notes = []string{"the table says output_throughput 1048.12, the file 2048.12"}
		})},
		{"all failed", Serving, `{"completed": 0, "duration": 3, "mean_ttft_ms": 0.0, "p99_ttft_ms": 0.0, "mean_e2e_latency_ms": NaN, "output_throughput": 0.0}`, "", 64,
			Result{Format: Serving, Requested: 64, Failed: 64, Seconds: 3}},
		{"names of another branch", Own, `{"completed": 2, "total_output": 70, "max_itl_ms": 5, "total_token_throughput": 7, "p99_e2el_ms": 8, "mean_foo_ms": 9}`, "", 2,
			Result{Format: Own, Requested: 2, Completed: 2, Generated: 70, Metrics: map[string]float64{"max_itl_ms": 5, "total_throughput": 7, "p99_e2e_ms": 8}}},
		{"vllm", VLLM, `{"num_prompts": 10, "request_rate": "inf", "completed": 9, "failed": 1, "duration": 2.5, "request_goodput": null, "output_throughput": 50, "p99_e2el_ms": 80, "spec_decode_acceptance_length": 2.5}`, "", 0,
			Result{Format: VLLM, Requested: 10, Completed: 9, Failed: 1, Seconds: 2.5, Metrics: map[string]float64{"output_throughput": 50, "p99_e2e_ms": 80, "accept_length": 2.5}}},
		{"behind the rate that was asked for", Serving, `{"request_rate": 16.0, "completed": 10, "request_throughput": 9.5}`, "", 10,
			Result{Format: Serving, Requested: 10, Completed: 10, Metrics: map[string]float64{"request_throughput": 9.5}, Notes: []string{"asked for 16 requests/s, 9.5 were done"}}},
		{"nearly at it", VLLM, `{"request_rate": "10", "completed": 10, "request_throughput": 9.51}`, "", 10,
			Result{Format: VLLM, Requested: 10, Completed: 10, Metrics: map[string]float64{"request_throughput": 9.51}}},
		{"vllm's words", VLLM, `{"num_prompts": 8, "completed": 0, "failed": 8, "mean_ttft_ms": 0.0}`, "Failed requests during benchmark run detected (capping to 10):\nError 0: Service  Unavailable\nError 1: x\n", 8,
			Result{Format: VLLM, Requested: 8, Failed: 8, Error: "Service Unavailable"}},
		{"one batch, up to 0.5.4", OneBatch, `{"run_name": "default", "batch_size": 4, "input_len": 16, "output_len": 12, "latency": 0.0297, "output_throughput": 1900.5, "overall_throughput": 3771.04, "last_gen_throughput": 123.4}`,
			"======== Warmup Begin ========\nttft: 9.00 s\ninput throughput: 1.00 tok/s\n======== Warmup End   ========\n\nbatch size: 4\nttft: 0.25 s\nlast generation throughput: 123.40 tok/s\nInput throughput: 256.00 tok/s\n", 4,
			Result{Format: OneBatch, Requested: 4, Completed: 4, Seconds: 0.0297, Generated: 48,
				Metrics: map[string]float64{"output_throughput": 1900.5, "total_throughput": 3771.04, "last_gen_throughput": 123.4, "max_e2e_ms": 29.7, "max_ttft_ms": 250, "input_throughput": 256}}},
		{"one batch", OneBatch, `{"run_name": "r", "batch_size": 16, "output_len": 32, "latency": 2.5, "input_throughput": 100, "output_throughput": 200, "overall_throughput": 300, "last_ttft": 0.5, "last_gen_throughput": -1, "acc_length": 3, "num_early_stopped": 2}`, "", 16,
			Result{Format: OneBatch, Requested: 16, Completed: 16, Seconds: 2.5, Generated: 512, Notes: []string{"2 answers stopped early"},
				Metrics: map[string]float64{"input_throughput": 100, "output_throughput": 200, "total_throughput": 300, "max_ttft_ms": 500, "max_e2e_ms": 2500, "accept_length": 3}}},
		{"a table alone", VLLM, "", strings.Replace(table, "Benchmark duration", "Failed requests:                         4\nBenchmark duration", 1), 104,
			Result{Format: "table", Requested: 104, Completed: 100, Failed: 4, Seconds: 12.5, Generated: 25600, Notes: []string{"the client wrote no file: these are the figures of its table"},
				Metrics: map[string]float64{"request_throughput": 8, "output_throughput": 2048.12, "total_throughput": 10240, "mean_e2e_ms": 900.5, "p99_ttft_ms": 120.25}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(tt.kind, []byte(tt.file), []byte(tt.output), tt.requested)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoResult(t *testing.T) {
	tests := []struct{ name, file, output, want string }{
		{"nothing", "", "Traceback", "it wrote none"},
		{"two lines", serving + serving, "", "more than one"},
		{"two lines, one torn", serving + serving[:50], "", "torn"},
		{"one torn line", serving[:200], "", "no JSON object"},
		{"a list", "[1]", "", "no JSON object"},
		{"null", "null", "", "no JSON object"},
		{"no count", `{"duration": 1}`, "", "how many requests"},
		{"skipped", "", "Skip benchmark batch_size=64 due to kv cache limit.", "the client skipped it"},
		{"the table of an earlier run", "", table + "============ Serving Benchmark Result ============\n", "it wrote none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r, err := Read(Serving, []byte(tt.file), []byte(tt.output), 1); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v and %v, want an error with %q", r, err, tt.want)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	r := Run{Python: "/v/python", Host: "::1", Port: 30000, Model: "/m", Concurrency: 8, Requests: 64, Input: 1024, Output: 256, Seed: 1, Result: "/n/r.jsonl"}
	tests := []struct {
		kind string
		more []string
		want string
	}{
		{Serving, nil, "/v/python -m sglang.bench_serving --backend sglang --host ::1 --port 30000 --num-prompts 64 --max-concurrency 8 --seed 1 --output-file /n/r.jsonl --dataset-name random --random-input-len 1024 --random-output-len 256 --random-range-ratio 1.0"},
		{Serving, []string{"--dataset-name", "sharegpt"}, "/v/python -m sglang.bench_serving --backend sglang --host ::1 --port 30000 --num-prompts 64 --max-concurrency 8 --seed 1 --output-file /n/r.jsonl --dataset-name sharegpt"},
		{Serving, []string{"--dataset-name=random-ids"}, "/v/python -m sglang.bench_serving --backend sglang --host ::1 --port 30000 --num-prompts 64 --max-concurrency 8 --seed 1 --output-file /n/r.jsonl --random-input-len 1024 --random-output-len 256 --random-range-ratio 1.0 --dataset-name=random-ids"},
		{OneBatch, nil, "/v/python -m sglang.bench_one_batch_server --model None --base-url http://[::1]:30000 --batch-size 8 --input-len 1024 --output-len 256 --result-filename /n/r.jsonl"},
		{VLLM, nil, "vllm bench serve --backend openai --base-url http://[::1]:30000 --model /m --num-prompts 64 --max-concurrency 8 --seed 1 --ignore-eos --save-result --result-dir /n --result-filename r.jsonl --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 90,95,99 --dataset-name random --random-input-len 1024 --random-output-len 256"},
	}
	for _, tt := range tests {
		if got := strings.Join(r.Command(tt.kind, tt.more), " "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.kind, got, tt.want)
		}
	}
	if got := r.Fill([]string{"mine", "--at={host}:{port}", "{concurrency}x{requests}", "{input}/{output}", "{other}", "{result}"}); cmp.Diff([]string{"mine", "--at=::1:30000", "8x64", "1024/256", "{other}", "/n/r.jsonl"}, got) != "" {
		t.Errorf("filled: %q", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(serving), []byte(table), 100)
	f.Add([]byte(`{"batch_size": 1e300, "latency": -Infinity}`), []byte("Successful requests: 1e400"), -1)
	f.Add([]byte(`{"completed": "\"NaN", "x": "\`), []byte("Mean TTFT (ms): .\r"), 0)
	f.Fuzz(func(t *testing.T, file, output []byte, requested int) {
		for _, kind := range Kinds() {
			r, err := Read(kind, file, output, requested)
			if err != nil {
				continue
			}
			if r.Completed < 0 || r.Failed < 0 || r.Completed == 0 && len(r.Metrics) > 0 {
				t.Errorf("%s: %+v", kind, r)
			}
			for metric, x := range r.Metrics {
				if !Known(metric) || !(x >= 0) || x > 1e308 {
					t.Errorf("%s: %s is %v", kind, metric, x)
				}
			}
		}
	})
}
