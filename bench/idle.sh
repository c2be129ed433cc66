#!/bin/bash
# What a launch costs while its server serves and nothing happens, beside what
# supervisord and process-compose cost with the same server, all at the same time.
#
#   bench/idle.sh [SECONDS]    (default 180, after half a minute of settling)
#
# sglaunch samples at its defaults: processes every 2 s, eight GPUs of the stand-in
# NVML library every 10 s. Its three processes are shown one by one, and the time
# that the library takes apart: it reads a file for every question. The
# peers are looked for in PATH, or named by SUPERVISORD and PROCESS_COMPOSE; one
# that is not there is left out. They neither poll a GPU nor read the output.
#
# Exit status 1 where sglaunch uses 0.3 % of a core or more without the library,
# or 60 MiB or more in all.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-180}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT
go build -o "$work/sglaunch" ./cmd/sglaunch
cc -shared -fPIC -O1 -std=gnu11 -Wl,-soname,libnvidia-ml.so.1 -o "$work/libnvidia-ml.so.1" internal/rehearsal/nvml/*.c -lpthread

# Eight GPUs at work, as the stand-in's board describes them.
{
    echo "gpus 8"
    for i in 0 1 2 3 4 5 6 7; do
        printf '%s\n' "$i.name NVIDIA B200" "$i.uuid GPU-5ea1a0c4-0000-4000-8000-00000000000$i" "$i.total 192265846784" \
            "$i.used 171798691840" "$i.util 60" "$i.memutil 30" "$i.power 600000" "$i.temperature 55"
    done
} > "$work/board"
mkdir "$work/board.d"

# A server with eight ranks, a detokenizer and a main process, all of them idle.
cat > "$work/server.sh" <<'SERVER'
echo '[2026-02-19 03:00:00] server_args=ServerArgs(model_path="m", tp_size=8)'
for rank in 0 1 2 3 4 5 6 7; do
    bash -c "exec -a sglang::scheduler_TP$rank sleep 100000" &
done
bash -c 'exec -a sglang::detokenizer sleep 100000' &
echo '[2026-02-19 03:00:03] The server is fired up and ready to roll!'
wait
SERVER

names=()
start() { # NAME COMMAND...
    names+=("$1=$work/$1.pid")
    ( echo "$BASHPID" > "$work/$1.pid"; exec "${@:2}" > "$work/$1.out" 2>&1 ) &
}
export SGLAUNCH_REHEARSAL_NVML="$work/board" SGLAUNCH_REHEARSAL_NVML_TIME="$work/library" LD_LIBRARY_PATH="$work" SGLAUNCH_STATE="$work/state"
start sglaunch "$work/sglaunch" run -- bash "$work/server.sh" -m sglang.launch_server --tp 8
unset LD_LIBRARY_PATH
if supervisord=$(command -v "${SUPERVISORD:-supervisord}"); then
    printf '[supervisord]\nnodaemon=true\nlogfile=%s/sd.log\npidfile=%s/sd.pid\n[program:server]\ncommand=bash %s/server.sh\nstopasgroup=true\nkillasgroup=true\n' \
        "$work" "$work" "$work" > "$work/sd.conf"
    start supervisord "$supervisord" -c "$work/sd.conf"
fi
if compose=$(command -v "${PROCESS_COMPOSE:-process-compose}"); then
    printf 'version: "0.5"\nprocesses:\n  server:\n    command: "bash %s/server.sh"\n' "$work" > "$work/pc.yaml"
    start process-compose "$compose" up -t=false --no-server -f "$work/pc.yaml" -L "$work/pc.log"
fi
until grep -q 'ready after' "$work/sglaunch.out"; do sleep 0.2; done
sleep 30

python3 - "$seconds" "$work/library" "${names[@]}" <<'PY'
import os, re, sys, time
seconds, meter = float(sys.argv[1]), sys.argv[2]
tick = os.sysconf("SC_CLK_TCK")

def stat(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()

def cpu(pid):
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / tick

def pss(pid):
    return int(re.search(r"^Pss:\s+(\d+)", open(f"/proc/{pid}/smaps_rollup").read(), re.M)[1]) / 1024

def children(parent):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if stat(pid)[1] == str(parent):
                yield int(pid)
        except OSError:
            pass

def named(parent, word):
    return next(p for p in children(parent) if word in open(f"/proc/{p}/cmdline").read())

rows = {}
for name, file in (a.split("=", 1) for a in sys.argv[3:]):
    pid = int(open(file).read())
    if name == "sglaunch":
        supervisor = named(pid, "__supervisor")
        rows["sglaunch: shim"], rows["sglaunch: supervisor"] = pid, supervisor
        rows["sglaunch: sampler"] = named(supervisor, "__gpu-sampler")
    else:
        rows[name] = pid
def library():
    return int.from_bytes(open(meter, "rb").read(8), sys.byteorder) / 1e9

before, called = {name: cpu(pid) for name, pid in rows.items()}, library()
began = time.monotonic()
time.sleep(seconds)
took = time.monotonic() - began
share = {name: 100 * (cpu(pid) - before[name]) / took for name, pid in rows.items()}
size = {name: pss(pid) for name, pid in rows.items()}
library_share = 100 * (library() - called) / took
for name in rows:
    print(f"{name:22} {share[name]:6.3f} % of a core {size[name]:7.1f} MiB PSS")
print(f"{'  of it the library':22} {library_share:6.3f} % of a core")
own = sum(s for name, s in share.items() if name.startswith("sglaunch")) - library_share
memory = sum(s for name, s in size.items() if name.startswith("sglaunch"))
print(f"sglaunch without the library: {own:.3f} % of a core, {memory:.1f} MiB PSS, over {took:.0f} s")
sys.exit(0 if own < 0.3 and memory < 60 else 1)
PY
