#!/usr/bin/env bash
# Lints every example as whoever takes it would, and runs the sbatch script on a
# real Slurm of two nodes: one server dies, all start again, the end is orderly.
set -euo pipefail
cd "$(dirname "$0")/../.."

(cd .ci/kube && go run . ../../examples/kubernetes.yaml ../../examples/leaderworkerset.yaml)
# The grace of the pods is what the unit of the same launch.toml would have.
grace=$(sed -nE 's/^ *terminationGracePeriodSeconds: ([0-9]+)$/\1/p' examples/kubernetes.yaml)

if [ "$(id -u)" -ne 0 ]; then
	echo "not checked here: the sbatch script, Slurm takes root"
	exit 0
fi
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null || ! command -v shellcheck >/dev/null || ! command -v pgrep >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends slurm-wlm munge shellcheck procps >/dev/null
fi
shellcheck examples/sglang.sbatch

work=$(mktemp -d -p /var/tmp sglaunch-slurm.XXXXXX)
# shellcheck source=.ci/claims.sh
. .ci/claims.sh
show_why() { tail -n 60 "$work"/*.out "$work"/job.*; }
# shellcheck source=.ci/slurm/cluster.sh
. .ci/slurm/cluster.sh
trap 'stop_cluster; rm -rf "$work"' EXIT

mkdir -p "$work/bin" "$work/model" "$work/lib/sglang"
go build -o "$work/bin/sglaunch" ./cmd/sglaunch
awk '/^  launch.toml: \|/ {on = 1; next} on && /^---/ {exit} on {sub(/^    /, ""); print}' examples/kubernetes.yaml >"$work/launch.toml"
chmod 600 "$work/launch.toml"
needed=$("$work/bin/sglaunch" unit -c "$work/launch.toml" | sed -nE 's/^TimeoutStopSec=([0-9]+)s$/\1/p')
expect "the pods' grace of $grace s is enough for a stop of $needed s" [ "$grace" -ge "$needed" ]
cp .ci/slurm/server.py "$work/lib/sglang/launch_server.py"
printf '__version__ = "0.5.9"\n' >"$work/lib/sglang/__init__.py"
printf '{"architectures": ["StandIn"], "num_hidden_layers": 2, "hidden_size": 64}\n' >"$work/model/config.json"

printf '\2\0\0\0\0\0\0\0{}' >"$work/model/model.safetensors"
echo '{}' >"$work/model/tokenizer.json"

start_cluster "$work"
echo "  Slurm $(sinfo --version | cut -d' ' -f2) is up (${SECONDS}s)"
script=$work/sglang.sbatch # with the GPUs and the memory that these nodes have
sed -E 's/--gpus-per-node=8/--gpus-per-node=2/; s/^#SBATCH --exclusive$/#SBATCH --mem=100/' examples/sglang.sbatch >"$script"
export PATH=$work/bin:$PATH PYTHONPATH=$work/lib MODEL=$work/model HEAD=127.0.0.1 PAUSE=1 GANG_FIRST=$work/first SGLAUNCH_STATE=$work/records
sbatch --test-only "$script"
job=$(sbatch --parsable --export=ALL -o "$work/job.%j" "$script")
eventually 90 "the first gang ends" grep -q "gang 1 ended with 10; all nodes start again" "$work/job.$job"
# The gang in which a server died may have been ready, or not; the second one is.
eventually 90 "both nodes of the second gang are ready" bash -c "[ \$(sed '1,/gang 1 ended/d' '$work/job.$job' | grep -c 'ready after') -ge 2 ]"
expect "each node has ended at once, with no relaunch of its own" bash -c "! sed '1,/gang 1 ended/!d' '$work/job.$job' | grep -q 'attempt 2'"
expect "the node that lost its peer says so" bash -c "sed '1,/gang 1 ended/!d' '$work/job.$job' | grep -q 'peer_rank_failed\|one node of several'"
expect "no budget is used up" bash -c "! grep -q 'used up\|in a row' '$work/job.$job'"
echo "  a dead server on one node: all nodes start again (${SECONDS}s)"

scancel --signal=TERM --batch "$job"
eventually 60 "the job has ended" bash -c "! squeue -h -j $job | grep -q ."
expect "TERM ends it in order" bash -c "scontrol show job $job | grep -q 'ExitCode=0:0'"
expect "both servers have drained" [ "$(grep -c 'Gracefully exiting' "$work/job.$job")" -ge 2 ]
expect "no process is left" bash -c "! pgrep -f '[l]aunch_server.*$work'"
echo "  TERM before the time is up: drained, exit code 0 (${SECONDS}s)"
