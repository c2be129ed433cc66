#!/bin/bash
# How fast `sglaunch explain` reads a long log, beside GNU grep with the phrases
# that people grep for. Prints MB/s and peak memory of both, medians of RUNS.
#
#   bench/explain.sh [MEGABYTES]      (default 1000; needs that much in $TMPDIR)
#
# The log is a start of eight ranks, then a long service: batches, requests,
# and every thousandth line something else. Exit status 1 where explain is slower.
set -euo pipefail
cd "$(dirname "$0")/.."
megabytes=${1:-1000} runs=${RUNS:-3}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
go build -o "$work/sglaunch" ./cmd/sglaunch

python3 - "$megabytes" "$work/server.log" <<'PY'
import sys
size, path = int(sys.argv[1]) * 1_000_000, sys.argv[2]
def at(s): return f"2026-02-19 {s // 3600 % 24:02d}:{s // 60 % 60:02d}:{s % 60:02d}"
def start():
    yield f"[{at(0)}] server_args=ServerArgs(model_path='/models/m', tp_size=8)"
    for s, text in enumerate(["Init torch distributed begin.", "Init torch distributed ends. elapsed=4.10 s, mem usage=1.22 GB",
            "Load weight begin. avail mem=138.20 GB", "Load weight end. elapsed=14.58 s, type=M, avail mem=57.26 GB, mem usage=80.94 GB.",
            "KV Cache is allocated. #tokens: 454112, KV size: 29.72 GB", "Memory pool end. avail mem=25.26 GB",
            "Running FlashInfer autotune...", "FlashInfer autotune completed.",
            "Capture cuda graph begin. This can take up to several minutes. avail mem=24.10 GB",
            "Capture cuda graph end. Time elapsed: 7.10 s. mem usage=0.79 GB. avail mem=23.39 GB."]):
        for rank in range(8): yield f"[{at(10 * s)} TP{rank}] {text}"
    yield f"[{at(200)}] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)"
    yield f"[{at(201)}] The server is fired up and ready to roll!"
def block(s):
    for i in range(250):
        t = at(s + i)
        yield f"[{t} TP0] Decode batch, #running-req: {i % 97}, #token: {3938 + i}, token usage: 0.{i % 90:02d}, cuda graph: True, gen throughput (token/s): {1500 + i}.34, #queue-req: 0"
        yield f"[{t} TP0] Prefill batch, #new-seq: 1, #new-token: {587 + i}, #cached-token: 0, token usage: 0.{i % 90:02d}, #running-req: {i % 97}, #queue-req: 0, input throughput (token/s): 2060.11"
        yield f'[{t}] INFO:     192.0.2.{i}:{50000 + i} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        if i % 83 == 0: yield f"[{t} TP{i % 8}] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.0980 -> 0.9446"
with open(path, "w") as f:
    written = f.write("\n".join(start()) + "\n")
    s = 300
    while written < size:
        written += f.write("\n".join(block(s)) + "\n")
        s += 250
PY

python3 - "$work" "$runs" <<'PY'
import os, statistics, sys, time
work, runs = sys.argv[1], int(sys.argv[2])
log = work + "/server.log"
size = os.path.getsize(log)
grep = ["grep", "-cE", "Load weight end|autotune|Autotune|KV Cache|Memory pool|fired up|ready to roll|error|Error|CUDA|Traceback", log]
explain = [work + "/sglaunch", "explain", "--json", log]
def run(argv):
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(work + "/out", os.O_WRONLY | os.O_CREAT), 1)  # grep stops early where it writes to /dev/null
        os.execvpe(argv[0], argv, {**os.environ, "LC_ALL": "C"})
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 1), argv
    return size / 1e6 / (time.monotonic() - begin), usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime
def median(results, i): return statistics.median(r[i] for r in results)
open(log, "rb").read(1)
results = {"grep -E": [], "explain": []}
run(grep)
for _ in range(runs):
    results["grep -E"].append(run(grep))
    results["explain"].append(run(explain))
for name, r in results.items():
    print(f"{name:8} {median(r, 0):7.0f} MB/s   {median(r, 1):5.0f} MiB   {median(r, 2):5.2f} s CPU")
sys.exit(0 if median(results["explain"], 0) >= median(results["grep -E"], 0) and median(results["explain"], 1) < 96 else 1)
PY
