#!/bin/bash
# How fast a server may print: one that logs every request writes long lines as
# fast as its terminal takes them, and tells how long that took it. Two ways take
# the same output in turn:
#
#   copy        bench/ptycopy: the pty, copied to a file
#   sglaunch    `sglaunch run` to a file; its raw log beside it, the output read
#               for its meaning by the supervisor meanwhile
#
#   bench/rate.sh [MEGABYTES [BYTES A LINE]]   (default 500 8000)
#
# Prints megabytes a second as the server sees them, medians of RUNS, and the
# median of the ratios of each pair. Exit status 1 where a byte is missing in the
# file or in the raw log, or where sglaunch lets the server print less than 80 % of
# what the copy does. The load of the machine is printed before and after: where others
# want the processors as well, the ratio says little.
set -euo pipefail
cd "$(dirname "$0")/.."
megabytes=${1:-500} length=${2:-8000} runs=${RUNS:-7}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
go build -o "$work/" ./cmd/sglaunch ./bench/ptycopy

python3 - "$work" "$megabytes" "$length" "$runs" <<'PY'
import filecmp, glob, os, shutil, statistics, subprocess, sys
work, megabytes, length, runs = sys.argv[1], *map(int, sys.argv[2:])
whole = work + "/whole.log"
server = ["python3", os.path.abspath("bench/requestlog.py"), str(megabytes), str(length)]
with open(whole, "wb") as f:
    subprocess.run(server, stdout=f, check=True, env={**os.environ, "TOOK": "/dev/null"})

def rate(name, argv, status):
    """Megabytes a second that the server could print; all of it must be there."""
    env = {**os.environ, "SGLAUNCH_STATE": work + "/state", "SGLAUNCH_RUNTIME": work + "/runtime", "TOOK": work + "/took"}
    with open(work + "/out", "wb") as out:
        done = subprocess.run(argv + server, stdout=out, stderr=subprocess.PIPE, env=env)
    if done.returncode != status:
        sys.exit(f"{name} ended with {done.returncode}: {done.stderr.decode()}")
    logs = glob.glob(work + "/state/launches/*/attempts/1/server.log")
    for path in [work + "/out", *logs]:
        if not filecmp.cmp(path, whole, shallow=False):
            sys.exit(f"{name}: {path} is not what the server has printed")
    if (name == "sglaunch") != (len(logs) == 1):
        sys.exit(f"{name}: {len(logs)} raw logs")
    shutil.rmtree(work + "/state", ignore_errors=True)
    return os.path.getsize(whole) / 1e6 / float(open(work + "/took").read())

# An SGLang server that ends unasked has failed: 10, no attempt is left.
ways = {"copy": ([work + "/ptycopy"], 0), "sglaunch": ([work + "/sglaunch", "run", "--quiet", "--relaunch.attempts=1", "--"], 10)}
got = {name: [] for name in ways}
print("load %.1f %.1f %.1f" % os.getloadavg())
for _ in range(runs):
    for name, (argv, status) in ways.items():
        got[name].append(rate(name, argv, status))
for name, rates in got.items():
    print(f"{name:10} {statistics.median(rates):6.1f} MB/s   ({min(rates):.1f} to {max(rates):.1f})")
print("load %.1f %.1f %.1f" % os.getloadavg())
ratio = statistics.median(s / c for s, c in zip(got["sglaunch"], got["copy"]))
print(f"the server prints at {100 * ratio:.0f} % of the speed of the copy")
sys.exit(0 if ratio >= 0.8 else 1)
PY
