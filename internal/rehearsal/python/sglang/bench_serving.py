"""Measure a server: python -m sglang.bench_serving ARGS.

The requests are real, few and short; what is reported follows a known function
of the server's arguments (sglang_rehearsal.throughput). Form and traps of the
results are those of the real client.
"""

import argparse
import json
import os
import sys
import threading
import time

from sglang_rehearsal import hang, scaled, throughput


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench_serving.py")
    parser.add_argument("--backend", default="sglang")
    parser.add_argument("--base-url")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--dataset-name", default="random")
    parser.add_argument("--dataset-path", default="")
    parser.add_argument("--model")
    parser.add_argument("--tokenizer")
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--sharegpt-output-len", type=int)
    parser.add_argument("--random-input-len", type=int, default=1024)
    parser.add_argument("--random-output-len", type=int, default=1024)
    parser.add_argument("--random-range-ratio", type=float, default=0.0)
    parser.add_argument("--request-rate", type=float, default=float("inf"))
    parser.add_argument("--max-concurrency", type=int)
    parser.add_argument("--output-file")
    parser.add_argument("--output-details", action="store_true")
    parser.add_argument("--disable-tqdm", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warmup-requests", type=int, default=1)
    parser.add_argument("--flush-cache", action="store_true")
    parser.add_argument("--tag")
    args = parser.parse_args(argv)
    args.base_url = args.base_url or "http://%s:%d" % (args.host, args.port)
    return args


class Client:
    """One run: asks the server until its time is over, and counts what fails."""

    def __init__(self, args):
        self.args = args
        self.trouble = throughput.settings()
        self.concurrency = args.max_concurrency or args.num_prompts
        self.failed = 0
        self.error = ""
        self.done = threading.Event()

    def run(self):
        info = self.ask("GET", "/get_server_info")
        if info is None:
            raise SystemExit("bench_serving: cannot reach the server: %s" % self.error)
        rate = throughput.measured(info, self.concurrency, throughput.count_run())
        seconds = self.args.num_prompts * self.args.random_output_len / rate
        for _ in range(self.args.warmup_requests):
            if self.generate() is None:
                raise SystemExit("Warmup failed - Please make sure benchmark arguments are correctly specified. Error: %s" % self.error)
        askers = [threading.Thread(target=self.keep_asking, daemon=True) for _ in range(min(self.concurrency, 4))]
        for a in askers:
            a.start()
        self.show_progress(scaled(seconds))
        self.done.set()
        for a in askers:
            a.join()
        return info, seconds, self.failures()

    def show_progress(self, seconds):
        """A bar, as tqdm draws it, while the requests are under way."""
        steps = 20
        for i in range(1, steps + 1):
            if "stall" in self.trouble and i * 3 > steps:
                hang()
            self.wait(seconds / steps)
            if not self.args.disable_tqdm:
                n = self.args.num_prompts * i // steps
                sys.stderr.write("\r%3d%%|%-10s| %d/%d [00:%02d<00:00, 9.13it/s]"
                                 % (100 * i // steps, "#" * (10 * i // steps), n, self.args.num_prompts, i))
                sys.stderr.flush()
        sys.stderr.write("\n")

    def wait(self, seconds):
        if "saturated" not in self.trouble:
            return time.sleep(seconds)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    def keep_asking(self):
        while not self.done.is_set():
            if self.generate() is None:
                self.failed += 1
                time.sleep(0.02)

    def failures(self):
        """How many of the requests that are reported count as failed."""
        if "all-failed" in self.trouble or self.failed > 4:
            return self.args.num_prompts
        return int(self.args.num_prompts * float(self.trouble.get("fail", 0)))

    def generate(self):
        return self.ask("POST", "/generate", {"text": "tell " * self.args.random_input_len, "sampling_params": {"max_new_tokens": 8}})

    def ask(self, method, path, body=None):
        import urllib.request

        request = urllib.request.Request(self.args.base_url + path, method=method)
        if os.environ.get("OPENAI_API_KEY"):
            request.add_header("Authorization", "Bearer " + os.environ["OPENAI_API_KEY"])
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=60) as response:
                return json.loads(response.read())
        except (OSError, ValueError) as e:
            self.error = self.error or str(e)
            return None


def record(args, info, seconds, failed):
    """The line of the output file. Of a run in which all failed: TTFT 0, E2E NaN."""
    completed = args.num_prompts - failed
    share = completed / args.num_prompts
    tokens_in, tokens_out = completed * args.random_input_len, completed * args.random_output_len
    concurrency = min(args.max_concurrency or args.num_prompts, args.num_prompts)
    tpot = 1000.0 * concurrency * seconds / max(1, args.num_prompts * args.random_output_len)
    ttft = 0.0 if not completed else 40 + 3 * concurrency + args.random_input_len / 40
    e2e = float("nan") if not completed else ttft + tpot * args.random_output_len
    r = {
        "tag": args.tag, "backend": args.backend, "dataset_name": args.dataset_name, "request_rate": args.request_rate,
        "max_concurrency": args.max_concurrency, "sharegpt_output_len": args.sharegpt_output_len,
        "random_input_len": args.random_input_len, "random_output_len": args.random_output_len,
        "random_range_ratio": args.random_range_ratio, "server_info": info, "duration": seconds, "completed": completed,
        "total_input_tokens": tokens_in, "total_input_text_tokens": tokens_in, "total_input_vision_tokens": 0,
        "total_output_tokens": tokens_out, "total_output_tokens_retokenized": tokens_out,
        "request_throughput": completed / seconds, "input_throughput": tokens_in / seconds,
        "output_throughput": tokens_out / seconds, "total_throughput": (tokens_in + tokens_out) / seconds,
        "concurrency": concurrency * share, "accept_length": None,
        "max_output_tokens_per_s": 1.2 * tokens_out / seconds, "max_concurrent_requests": concurrency,
    }
    for name, mean in (("e2e_latency", e2e), ("ttft", ttft), ("tpot", tpot * share), ("itl", tpot * share)):
        for kind, factor in (("mean", 1), ("median", 0.97), ("std", 0.1), ("p90", 1.2), ("p95", 1.3), ("p99", 1.5)):
            r["%s_%s_ms" % (kind, name)] = mean * factor
    return r


SECTIONS = (("End-to-End Latency", "e2e_latency", "E2E Latency"), ("Time to First Token", "ttft", "TTFT"),
            ("Time per Output Token (excl. 1st token)", "tpot", "TPOT"), ("Inter-Token Latency", "itl", "ITL"))


def print_table(args, r):
    line = "{:<40} {:<10}".format
    number = "{:<40} {:<10.2f}".format
    print("\n{s:{c}^{n}}".format(s=" Serving Benchmark Result ", n=50, c="="))
    print(line("Backend:", args.backend))
    print(line("Traffic request rate:", args.request_rate))
    print(line("Max request concurrency:", args.max_concurrency or "not set"))
    print(line("Successful requests:", r["completed"]))
    print(number("Benchmark duration (s):", r["duration"]))
    print(line("Total input tokens:", r["total_input_tokens"]))
    print(line("Total input text tokens:", r["total_input_text_tokens"]))
    print(line("Total generated tokens:", r["total_output_tokens"]))
    print(line("Total generated tokens (retokenized):", r["total_output_tokens_retokenized"]))
    for label, key in (("Request throughput (req/s):", "request_throughput"),
                       ("Input token throughput (tok/s):", "input_throughput"),
                       ("Output token throughput (tok/s):", "output_throughput"),
                       ("Peak output token throughput (tok/s):", "max_output_tokens_per_s")):
        print(number(label, r[key]))
    print(line("Peak concurrent requests:", r["max_concurrent_requests"]))
    print(number("Total token throughput (tok/s):", r["total_throughput"]))
    print(number("Concurrency:", r["concurrency"]))
    for title, key, label in SECTIONS:
        print("{s:{c}^{n}}".format(s=title, n=50, c="-"))
        for kind in ("mean", "median", "p90", "p95", "p99"):
            shown = kind.capitalize() if kind[0] == "m" else kind.upper()
            print(number("%s %s (ms):" % (shown, label), r["%s_%s_ms" % (kind, key)]))
    print("=" * 50)


def main(argv):
    args = parse(argv)
    client = Client(args)
    r = record(args, *client.run())
    print_table(args, r)
    sys.stdout.flush()
    if "no-record" in client.trouble or not args.output_file:
        return
    with open(args.output_file, "a", encoding="utf-8") as f:
        f.write(json.dumps(r) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
