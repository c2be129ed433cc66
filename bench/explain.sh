#!/bin/bash
# How fast `sglaunch explain` reads a long log, beside GNU grep with the phrases
# that people grep for. Prints MB/s, peak memory and CPU time of both, medians of
# RUNS, for the logs that bench/serverlog.py knows.
#
#   bench/explain.sh [MEGABYTES [KIND ...]]   (default 1000 and all kinds; needs
#                                             that much in $TMPDIR)
#
# Exit status 1 where explain is slower than grep or takes 96 MiB.
set -euo pipefail
cd "$(dirname "$0")/.."
megabytes=${1:-1000} runs=${RUNS:-3}
kinds=("${@:2}")
[ ${#kinds[@]} -gt 0 ] || kinds=(service kubectl journal cri compose quoted coloured docker starts text)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
go build -o "$work/sglaunch" ./cmd/sglaunch

measure() {
	python3 - "$work" "$runs" "$1" <<'PY'
import os, statistics, sys, time
work, runs, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
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
results = {"grep -E": [], "explain": []}
run(grep)
for _ in range(runs):
    results["grep -E"].append(run(grep))
    results["explain"].append(run(explain))
for name, r in results.items():
    print(f"{kind:8} {name:8} {median(r, 0):7.0f} MB/s   {median(r, 1):5.0f} MiB   {median(r, 2):5.2f} s CPU", flush=True)
sys.exit(0 if median(results["explain"], 0) >= median(results["grep -E"], 0) and median(results["explain"], 1) < 96 else 1)
PY
}

status=0
for kind in "${kinds[@]}"; do
	python3 bench/serverlog.py "$kind" "$megabytes" > "$work/server.log"
	measure "$kind" || status=1
done
exit $status
