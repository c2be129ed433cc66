#!/bin/bash
# What it costs to follow a server's output while it is printed, beside the least
# that any launcher has to do: a pty and a copy. Three ways take the same output
# in turn; CPU seconds of each are its own, without the command's, medians of
# RUNS:
#
#   copy        bench/ptycopy: the pty, copied to a file
#   tracked     the same process reads the output for its meaning as well: what
#               matching itself adds
#   supervisor  the supervisor of a real `sglaunch run` of the same command; beside
#               matching it receives the output from another process
#   at rest     of the same supervisor, what it takes with next to no output
#
#   bench/live.sh [MEGABYTES [KIND]]   (default 200 service; see bench/serverlog.py)
#
# Exit status 1 where tracking adds 15 % or more to the copy.
set -euo pipefail
cd "$(dirname "$0")/.."
megabytes=${1:-200} kind=${2:-service} runs=${RUNS:-3}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
go build -o "$work/" ./cmd/sglaunch ./bench/ptycopy
python3 bench/serverlog.py "$kind" "$megabytes" > "$work/server.log"

python3 - "$work" "$runs" <<'PY'
import os, statistics, subprocess, sys, time
work, runs = sys.argv[1], int(sys.argv[2])
log, little = work + "/server.log", work + "/little.log"
with open(log, "rb") as server, open(little, "wb") as first:
    first.write(server.read(1_000_000))
tick = os.sysconf("SC_CLK_TCK")

def copy(*flags):
    with open(work + "/out", "wb") as out:
        done = subprocess.run([work + "/ptycopy", *flags, "cat", log], stdout=out, stderr=subprocess.PIPE, check=True)
    return float(done.stderr)

def supervisor(log):
    """CPU seconds of the supervisor of a launch, as last seen before it ended."""
    argv = [work + "/sglaunch", "run", "--quiet", "--relaunch.attempts=1", "--", "cat", log]
    env = {**os.environ, "SGLAUNCH_STATE": work + "/state", "SGLAUNCH_RUNTIME": work + "/runtime"}
    with open(work + "/out", "wb") as out:
        shim = subprocess.Popen(argv, stdout=out, stderr=subprocess.DEVNULL, env=env)
    seconds = 0.0
    while shim.poll() is None:
        for pid in children(shim.pid):
            try:
                if b"__supervisor" in open(f"/proc/{pid}/cmdline", "rb").read():
                    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
                    seconds = max(seconds, (int(fields[11]) + int(fields[12])) / tick)
            except (FileNotFoundError, ProcessLookupError):
                pass
        time.sleep(0.05)
    return seconds

def children(parent):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1] == str(parent):
                yield pid
        except (FileNotFoundError, ProcessLookupError):
            pass

ways = {"copy": copy, "tracked": lambda: copy("-track"), "supervisor": lambda: supervisor(log), "at rest": lambda: supervisor(little)}
taken = {name: [] for name in ways}
for _ in range(runs):
    for name, way in ways.items():
        taken[name].append(way())
seconds = {name: statistics.median(s) for name, s in taken.items()}
more = {"tracked": seconds["tracked"] - seconds["copy"], "supervisor": seconds["supervisor"] - seconds["at rest"]}
for name, s in seconds.items():
    adds = f"   {100 * more[name] / seconds['copy']:+.0f} % of the copy for the output" if name in more else ""
    print(f"{name:10} {s:6.2f} s CPU{adds}", flush=True)
sys.exit(0 if more["tracked"] < 0.15 * seconds["copy"] else 1)
PY
