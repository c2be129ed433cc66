#!/bin/bash
# How fast a server may print: one that logs every request writes long lines as
# fast as its terminal takes them, and tells how long that took it. Three ways take
# the same output in turn:
#
#   copy        bench/ptycopy: the pty, copied to a file
#   script      script(1) of util-linux: the pty, copied to a file, and a log of it
#   sglaunch    `sglaunch run` to a file, and its raw log; the output is read for its
#               meaning by the supervisor meanwhile
#
#   bench/rate.sh [MEGABYTES [BYTES A LINE [PACE]]]   (default 500 8000)
#
# With PACE the server has no more to say than so many megabytes a second.
#
# Prints megabytes a second as the server sees them, medians of RUNS, and the
# medians of the ratios of each round. Exit status 1 where a byte is missing in the
# file or in sglaunch's raw log, or where sglaunch lets the server print less than 80 %
# of what script does, which writes the same two files and understands nothing. The
# load of the machine is printed before and after: where others want the processors
# as well, the ratios say little.
set -euo pipefail
cd "$(dirname "$0")/.."
megabytes=${1:-500} length=${2:-8000} pace=${3:-} runs=${RUNS:-7}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
go build -o "$work/" ./cmd/sglaunch ./bench/ptycopy

python3 - "$work" "$megabytes" "$length" "$runs" $pace <<'PY'
import filecmp, glob, os, shlex, shutil, statistics, subprocess, sys
work, megabytes, length, runs = sys.argv[1], *map(int, sys.argv[2:5])
pace = sys.argv[5:]
whole = work + "/whole.log"
server = ["python3", os.path.abspath("bench/requestlog.py"), str(megabytes), str(length), *pace]
with open(whole, "wb") as f:
    subprocess.run(server, stdout=f, check=True, env={**os.environ, "TOOK": "/dev/null"})

quiet, _held = os.pipe()  # standard input that neither says anything nor ends: script types its end

def rate(name, argv, status):
    """Megabytes a second that the server could print; all of it must be there."""
    env = {**os.environ, "SGLAUNCH_STATE": work + "/state", "SGLAUNCH_RUNTIME": work + "/runtime", "TOOK": work + "/took"}
    with open(work + "/out", "wb") as out:
        done = subprocess.run(argv, stdin=quiet, stdout=out, stderr=subprocess.PIPE, env=env)
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

ways = {
    "copy": ([work + "/ptycopy", *server], 0),
    # A terminal that changes no byte, as the others'.
    "script": (["script", "--quiet", "--command", "stty raw && exec " + shlex.join(server), work + "/typescript"], 0),
    # An SGLang server that ends unasked has failed: 10, no attempt is left.
    "sglaunch": ([work + "/sglaunch", "run", "--quiet", "--relaunch.attempts=1", "--", *server], 10),
}
got = {name: [] for name in ways}
print("load %.1f %.1f %.1f" % os.getloadavg())
for _ in range(runs):
    for name, (argv, status) in ways.items():
        got[name].append(rate(name, argv, status))
for name, rates in got.items():
    print(f"{name:10} {statistics.median(rates):6.1f} MB/s   ({min(rates):.1f} to {max(rates):.1f})")
print("load %.1f %.1f %.1f" % os.getloadavg())
def against(peer):
    return statistics.median(s / p for s, p in zip(got["sglaunch"], got[peer]))
print(f"under sglaunch the server prints at {100 * against('copy'):.0f} % of the speed of the copy, {100 * against('script'):.0f} % of script's")
sys.exit(0 if against("script") >= 0.8 else 1)
PY
