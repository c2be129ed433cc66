#!/usr/bin/env bash
# A real file system that stops answering (FUSE, its server stopped) below the
# model, and below the state directory: check, run and stop each keep their own
# limits, and say what hangs.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "$(id -u)" -ne 0 ] || [ ! -e /dev/fuse ] || ! unshare --mount true 2>/dev/null; then
	echo "not checked here: it takes root and /dev/fuse"
	exit 0
fi
if [ -z "${SGLAUNCH_APART:-}" ]; then # mounts of our own, gone with us
	SGLAUNCH_APART=1 exec unshare --mount bash "$0"
fi
work=$(mktemp -d -p /var/tmp sglaunch-hanging.XXXXXX)
fuse=
answer() {
	if [ -n "$fuse" ]; then
		kill -CONT "$fuse" 2>/dev/null || true
		umount "$work/mnt" 2>/dev/null || umount -l "$work/mnt" 2>/dev/null || true
		wait "$fuse" 2>/dev/null || true
		fuse=
	fi
}
trap 'answer; rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/mnt" "$work/state" "$work/slow" "$work/s"
GOBIN=$work/bin go install github.com/hanwen/go-fuse/v2/example/loopback@v2.8.0
go build -o "$work/bin/sglaunch" ./cmd/sglaunch
go run ./.ci/systemd "$work/s" healthy 12
grep -v -e '^\[\[patch' -e '^use = ' "$work/s/launch.toml" >"$work/s/plain.toml"
sed "s#$work/s/stage/model#$work/mnt#" "$work/s/plain.toml" >"$work/s/model.toml"
chmod 600 "$work"/s/*.toml
set -a
# shellcheck disable=SC1091
. "$work/s/env"
set +a

# serve FOLDER shows a folder at mnt until answer.
serve() {
	"$work/bin/loopback" -directmountstrict "$work/mnt" "$1" >"$work/fuse.log" 2>&1 &
	fuse=$!
	for _ in $(seq 100); do mountpoint -q "$work/mnt" && return; sleep 0.1; done
	cat "$work/fuse.log" >&2
	exit 1
}
# shellcheck source=.ci/claims.sh
. .ci/claims.sh
show_why() { cat "$work/said"; }
# launch CONFIG MOMENT: runs until it has said so; its process is $launch.
launch() {
	"$work/bin/sglaunch" run -c "$work/s/$1" >"$work/out" 2>"$work/said" &
	launch=$!
	eventually 60 "it says $2" grep -q "$2" "$work/said"
}
ended() { ! kill -0 "$launch" 2>/dev/null; }
# stops SECONDS: a stop is done in that time, and nothing broke.
stops() {
	kill -TERM "$launch"
	eventually "$1" "the launch has stopped" grep -q "stopped as asked" "$work/said"
	if grep -q -e panic -e 'started again' "$work/said"; then cat "$work/said" >&2; exit 1; fi
}

export SGLAUNCH_STATE=$work/state
serve "$work/s/stage/model"
kill -STOP "$fuse"
begun=$SECONDS
"$work/bin/sglaunch" check -c "$work/s/model.toml" >"$work/said"
grep -A1 '^warn  model  *no answer within 10s' "$work/said" | grep -q 'hanging storage' || { cat "$work/said" >&2; exit 1; }
[ $((SECONDS - begun)) -le 20 ] || { echo "check took $((SECONDS - begun)) s" >&2; exit 1; }
echo "  check says that the model's folder does not answer"

launch model.toml "."
stops 5
eventually 10 "it has ended" ended
wait "$launch"
echo "  a stop is heard while the preflight hangs"

launch model.toml "server is process"
stops 10
eventually 10 "it has ended" ended
wait "$launch"
echo "  a server that hangs on its model is stopped"
answer

serve "$work/slow"
export SGLAUNCH_STATE=$work/mnt
launch plain.toml "ready after"
kill -STOP "$fuse"
stops 40
answer # until then the kernel may hold what has exited: it closes files that were written
eventually 10 "it has ended" ended
wait "$launch"
echo "  a launch whose state directory hangs is stopped"
