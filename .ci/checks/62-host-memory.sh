#!/usr/bin/env bash
# A launch in a memory control group with a real limit: what the kernel ends for
# want of memory is told as such, with the limit in numbers, with and without the
# kernel log; what somebody else ends is not.
set -euo pipefail
cd "$(dirname "$0")/../.."

groups=$(findmnt -nt cgroup2 -o TARGET | head -n 1)
limit=memory.max
if ! grep -qs memory "$groups/cgroup.subtree_control"; then
	groups=$(findmnt -nt cgroup -O memory -o TARGET | head -n 1)
	limit=memory.limit_in_bytes
fi
group=$groups/sglaunch-check.$$
if [ "$(id -u)" -ne 0 ] || [ -z "$groups" ] || ! mkdir "$group" 2>/dev/null; then
	echo "not checked here: it takes root and a memory controller"
	exit 0
fi
work=$(mktemp -d -p /var/tmp sglaunch-memory.XXXXXX)
cleanup() {
	rm -rf "$work"
	for _ in $(seq 50); do rmdir "$group" 2>/dev/null && break || sleep 0.1; done # the dead leave it a moment later
}
trap cleanup EXIT
chmod 755 "$work"
echo $((256 << 20)) >"$group/$limit"

go build -o "$work/sglaunch" ./cmd/sglaunch
cat >"$work/server" <<'SERVER'
#!/bin/sh
# A server of two processes: server FILE hog|wait DIR. The second takes memory
# without end, or waits for somebody to end it; the first leaves without a word.
echo '[2026-02-19 03:00:00] server_args=ServerArgs(model_path="m", tp_size=1)'
echo '[2026-02-19 03:00:01] Load weight begin. avail mem=170.00 GB'
dd if="$1" of=/dev/null bs=1M status=none # more than the limit: file pages are taken back
case $2 in
hog) python3 -c 'all = [bytearray(1 << 20) for _ in range(4096)]' ;;
wait) sh -c 'echo $$ >"$0/rank"; while :; do sleep 1; done' "$3" ;;
esac
exit 1
SERVER
chmod 755 "$work/server"
dd if=/dev/zero of="$work/file" bs=1M count=300 status=none
chmod 644 "$work/file"

# launch NAME USER hog|wait: runs in the group; what it said is in $work/NAME/said.
launch() {
	local dir=$work/$1
	printf '[server]\nname = "%s"\n[relaunch]\npolicy = "never"\n[gpu]\nsample = { starting = "200ms" }\n' "$1" >"$dir/launch.toml"
	chown -R "$2" "$dir"
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$group" \
		setpriv --reuid "$2" --regid nogroup --clear-groups env HOME="$dir" SGLAUNCH_STATE="$dir/state" \
		"$work/sglaunch" run -c "$dir/launch.toml" -- "$work/server" "$work/file" "$3" "$dir" >"$dir/out" 2>"$dir/said" || echo $? >"$dir/code"
}
# expect NAME WHAT PATTERN: what it said matches.
expect() {
	if ! grep -Eq "$3" "$work/$1/said"; then
		echo "not so: $2" >&2
		cat "$work/$1/said" "$work/$1"/state/launches/*/attempts/*/evidence/memory.txt >&2
		exit 1
	fi
}
mkdir "$work/log" "$work/counters" "$work/killed"
group_limit='memory group [^ ]*sglaunch-check\.[0-9]+ reached its limit of 0\.2 GiB [0-9]+ times \(used: [0-9.]+ GiB, of it file pages: [0-9.]+ GiB\)'

launch log root hog
expect log "the kernel log names the process" "the kernel ended one of its processes: Memory cgroup out of memory: Killed process [0-9]+ \(python3\)[^;]*; $group_limit"
expect log "it is the cause" "^sglaunch: killed_oom: the kernel ended"
echo "  the process by the kernel log, the limit by the group"

launch counters nobody hog
expect counters "the counters explain it" "the kernel ended a process for want of memory; $group_limit"
expect counters "it is the cause" "^sglaunch: killed_oom: the kernel ended"
echo "  where the kernel log may not be read: by the counters"

launch killed nobody wait &
until [ -s "$work/killed/rank" ]; do sleep 0.1; done
kill -KILL "$(cat "$work/killed/rank")"
wait $!
expect killed "somebody else's signal is told apart" "the kernel counts no process that it ended for want of memory in memory group [^ ]*sglaunch-check"
echo "  what somebody else ends: the counters say so"
