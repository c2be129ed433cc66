#!/usr/bin/env bash
# A member in uninterruptible sleep that no SIGKILL ends (frozen by the freezer of
# control groups, version 1): it is named, the launch ends in time with 13.
set -euo pipefail
cd "$(dirname "$0")/../.."

groups=$(findmnt -nt cgroup -O freezer -o TARGET | head -n 1)
frozen=$groups/sglaunch-check.$$
if [ "$(id -u)" -ne 0 ] || [ -z "$groups" ] || ! mkdir "$frozen" 2>/dev/null; then
	echo "not checked here: it takes root and the freezer of control groups, version 1"
	exit 0
fi
work=$(mktemp -d -p /var/tmp sglaunch-unkillable.XXXXXX)
cleanup() {
	echo THAWED >"$frozen/freezer.state"
	for _ in $(seq 50); do rmdir "$frozen" 2>/dev/null && break || sleep 0.1; done
	rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "not so: $*" >&2; cat "$work/said" >&2; exit 1; }

go build -o "$work/sglaunch" ./cmd/sglaunch
printf '[server]\nname = "frozen"\n[stop]\ngrace = "1s"\nrelease = "5s"\n' >"$work/launch.toml"
chmod 600 "$work/launch.toml"
SGLAUNCH_STATE=$work/state "$work/sglaunch" run -c "$work/launch.toml" -- sh -c '
	sh -c "echo \$\$ >$0/rank; while :; do sleep 1; done" &
	while :; do sleep 1; done' "$work" >"$work/out" 2>"$work/said" &
launch=$!
until [ -s "$work/rank" ]; do sleep 0.1; done
rank=$(cat "$work/rank")
echo "$rank" >"$frozen/cgroup.procs"
echo FROZEN >"$frozen/freezer.state"
until grep -qx FROZEN "$frozen/freezer.state"; do sleep 0.1; done
grep -q '^State:.*D' "/proc/$rank/status" || fail "it is in state D"

begun=$SECONDS
kill -TERM $launch
code=0
wait $launch || code=$?
[ "$code" -eq 13 ] || fail "the code is 13, not $code"
[ $((SECONDS - begun)) -le 90 ] || fail "it ended in time: $((SECONDS - begun)) s"
named="$rank sh \(D \(waits in the kernel(, in [a-z_]+)?\)\)"
grep -Eq "processes that would not die: $named" "$work/said" || fail "it is named"
echo "  named, code 13, after $((SECONDS - begun)) s"
code=0
SGLAUNCH_STATE=$work/state "$work/sglaunch" recover >"$work/recovered" || code=$?
[ "$code" -eq 13 ] || fail "recover finds it still: code $code"
grep -q "process $rank (sh) would not go: D (waits in the kernel" "$work/recovered" || fail "recover names it"
echo "  recover names it too"
echo THAWED >"$frozen/freezer.state"
lives() { grep -qs '^State:.*[RSDT] (' "/proc/$rank/status"; }
for _ in $(seq 100); do lives || break; sleep 0.1; done
if lives; then fail "the SIGKILL that waits ends it as soon as it wakes"; fi
SGLAUNCH_STATE=$work/state "$work/sglaunch" recover >"$work/recovered" || fail "then recover has nothing to tell"
echo "  once it wakes it is gone"
