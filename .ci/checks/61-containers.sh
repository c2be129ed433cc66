#!/usr/bin/env bash
# Real containers of podman and docker as the server, from a root of a few files,
# without a registry: a stop that they hear, one that they do not, an end of their
# own, a client that is killed, and all of sglaunch killed, then healed.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ -z "${SGLAUNCH_CHECK_WORK:-}" ]; then
	if [ "$(id -u)" -ne 0 ] || ! unshare --mount --pid --cgroup --fork true 2>/dev/null || [ -z "$(findmnt -nt cgroup2 -o TARGET)" ]; then
		echo "not checked here: it takes root, namespaces and cgroup v2"
		exit 0
	fi
	if ! command -v podman dockerd crun /bin/busybox >/dev/null || ! command -v pgrep >/dev/null; then
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends podman crun docker.io busybox-static procps >/dev/null
	fi
	work=$(mktemp -d -p /var/tmp sglaunch-containers.XXXXXX)
	group=$(findmnt -nt cgroup2 -o TARGET | head -n 1)/sglaunch-check.$$
	cleanup() {
		rm -rf "$work"
		for _ in $(seq 50); do # the dead leave it a moment later
			find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
			[ -d "$group" ] || break
			sleep 0.1
		done
	}
	trap cleanup EXIT
	go build -o "$work/sglaunch" ./cmd/sglaunch
	mkdir -p "$group/inner"
	# What is mounted and started here is mounted nowhere else and ends with us.
	export SGLAUNCH_CHECK_WORK=$work SGLAUNCH_CHECK_GROUP=$group
	unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash ".ci/checks/$(basename "$0")"
	exit
fi
work=$SGLAUNCH_CHECK_WORK
echo $$ >"$SGLAUNCH_CHECK_GROUP/inner/cgroup.procs"
umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup

mkdir -p "$work/box/bin" "$work/box/proc" "$work/box/sys" "$work/box/dev" "$work/box/tmp" "$work/docker"
cp /bin/busybox "$work/box/bin/"
for name in sh sleep echo kill; do ln -s busybox "$work/box/bin/$name"; done

docker=(docker -H "unix://$work/docker/socket")
dockerd --iptables=false --ip-masq=false --bridge=none --storage-driver=vfs --data-root "$work/docker/data" --exec-root "$work/docker/exec" \
	-H "unix://$work/docker/socket" --pidfile "$work/docker/pid" >"$work/docker/log" 2>&1 &
daemon=$!
podman=(podman --root "$work/podman/data" --runroot "$work/podman/run" --storage-driver vfs --cgroup-manager cgroupfs --runtime crun)

# shellcheck source=.ci/claims.sh
. .ci/claims.sh
show_why() { tail -n 30 "$work/said" "$work/docker/log"; }
sglaunch() { SGLAUNCH_STATE=$work/state "$work/sglaunch" "$@"; }
# field NAME reads a number of the status: a pid, an attempt.
field() { sglaunch status --json boxed | grep -oE "\"$1\":[1-9][0-9]*" | sed -n '1s/.*://p'; }
count() { "${engine[@]}" ps --quiet --no-trunc | wc -l; }
none() { [ "$(count)" -eq 0 ]; }
printed() { grep -q "$1" "$work/printed"; }

# launch CONTAINER'S SCRIPT [FLAGS OF sglaunch] begins a launch of a container.
launch() {
	local script=$1
	shift
	: >"$work/printed" # what the launch before has printed is not this one's
	SGLAUNCH_STATE=$work/state "$work/sglaunch" run --server.name=boxed --stop.drain=2s --stop.grace=1s "$@" -- \
		"${engine[@]}" run --rm --name box --network none "${image[@]}" sh -c "$script" >"$work/printed" 2>"$work/said" &
	launched=$!
}
# ends CODE waits for the launch.
ends() {
	local code=0
	wait "$launched" || code=$?
	expect "it ends with $1, not $code" [ "$code" -eq "$1" ]
	expect "no container is left" none
}
loads='echo "[2026-02-19 03:00:01] Load weight begin. avail mem=170.00 GB"' # by this it is taken for a server
polite="trap 'echo heard it; exit 0' TERM; $loads; while :; do sleep 0.2; done"
deaf="trap '' TERM INT; $loads; while :; do sleep 0.2; done"

# tried is what an engine is put through that can run a container here at all.
tried() {
	if ! "${engine[@]}" run --rm --network none "${image[@]}" sh -c 'exit 0' >"$work/said" 2>&1; then
		echo "  ${engine[0]} is not tried: it cannot run a container here: $(tail -n 1 "$work/said")"
		return
	fi
	launch "$polite"
	eventually 60 "the container is up" printed 'Load weight'
	sglaunch stop --wait boxed >/dev/null
	ends 0
	expect "the container has heard the stop" printed 'heard it'

	launch "$deaf"
	eventually 60 "the container is up" printed 'Load weight'
	sglaunch stop --wait boxed >/dev/null
	ends 0

	launch "$loads; exit 3" --relaunch.attempts=1
	ends 10
	expect "the container's own status is told" grep -q 'exit status 3' "$work/said"

	launch "$deaf" --relaunch.attempts=9 # earlier launches count
	eventually 60 "the container is up" printed 'Load weight'
	kill -KILL "$(field server)"
	second() { [ "$(field attempt)" = 2 ] && [ "$(count)" -eq 1 ] && [ "$(grep -c 'Load weight' "$work/printed")" -eq 2 ]; }
	eventually 60 "the container of a killed client is ended and another runs" second
	sglaunch stop --wait boxed >/dev/null
	ends 0

	launch "$deaf"
	eventually 60 "the container is up" printed 'Load weight'
	local all
	all="$(field shim) $(field supervisor)"
	kill -STOP $all
	kill -KILL $all
	wait "$launched" 2>/dev/null || true
	sglaunch recover >"$work/said" 2>&1
	expect "recover has ended the container" none

	echo "  ${engine[0]} $("${engine[@]}" version --format '{{.Client.Version}}'): heard, not heard, ended by itself, client killed, all killed (${SECONDS}s)"
}

engine=("${podman[@]}") image=(--cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 --rootfs "$work/box")
tried
engine=("${docker[@]}") image=(box)
for _ in $(seq 300); do # its daemon begins
	if "${docker[@]}" info >/dev/null 2>&1 || ! kill -0 "$daemon" 2>/dev/null; then break; fi
	sleep 0.1
done
tar -C "$work/box" -c . | "${docker[@]}" import - box >/dev/null 2>&1 || true
tried
kill "$daemon" 2>/dev/null || true
echo "containers of real engines end with their launch"
