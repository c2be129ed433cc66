#!/usr/bin/env bash
# Runs the unit that "sglaunch unit" prints under a real systemd: a slow start
# that is extended, status, reload, upgrade, restart, kill -9 of each process, stop,
# an end that is final, a hang in the start, all killed at one blow, a boot after a
# power cut that left a file patched, a journald that hangs, a unit with User=, a person's own manager.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "$(id -u)" -ne 0 ] || ! unshare --mount --pid --cgroup --fork true 2>/dev/null || [ -z "$(findmnt -nt cgroup2 -o TARGET)" ]; then
	echo "not checked here: it takes root, namespaces and cgroup v2"
	exit 0
fi
if [ -z "${SGLAUNCH_CHECK_MOUNTS:-}" ]; then # what is mounted here is mounted nowhere else
	SGLAUNCH_CHECK_MOUNTS=private exec unshare --mount --propagation private bash ".ci/checks/$(basename "$0")"
fi
if [ ! -x /lib/systemd/systemd ] || ! command -v dbus-daemon >/dev/null || ! command -v pgrep >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends systemd dbus procps >/dev/null
fi

work=$(mktemp -d -p /var/tmp sglaunch-systemd.XXXXXX)
boot=
# powercut kills the machine and everything on it.
powercut() {
	if [ -n "$boot" ]; then kill -KILL "$boot" 2>/dev/null || true; wait "$boot" 2>/dev/null || true; fi
	boot=
	if [ -f "$work/cgroup" ]; then # what was killed leaves it a moment later
		for _ in $(seq 50); do
			find "$(cat "$work/cgroup")" -depth -type d -exec rmdir {} + 2>/dev/null || true
			[ -d "$(cat "$work/cgroup")" ] || break
			sleep 0.1
		done
	fi
}
cleanup() {
	powercut
	umount "$work/disk" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

chmod 755 "$work" # a unit with User= runs the program there
mkdir -p "$work/units" "$work/disk"
mount -t tmpfs tmpfs "$work/disk"
go build -o "$work/sglaunch" ./cmd/sglaunch
go build -o "$work/stage" ./.ci/systemd
# clean UNIT: systemd has nothing to say about it.
clean() {
	local said
	said=$(systemd-analyze verify "$1" 2>&1) || true
	if [ -n "$said" ]; then
		printf 'systemd-analyze verify: %s\n' "$said" >&2
		exit 1
	fi
}
"$work/sglaunch" unit --server.name=odd --server.env='{ A = "1 2%" }' -- /bin/sh -c 'echo "$HOME" 100% \ ; "x y"' >"$work/sglaunch-odd.service"
clean "$work/sglaunch-odd.service"
# unit NAME SCENARIO SPEED
unit() {
	mkdir "$work/$1"
	"$work/stage" "$work/$1" "$2" "$3"
	(cd "$work" && ./sglaunch unit -c "$work/$1/launch.toml") >"$work/units/sglaunch-$1.service"
	clean "$work/units/sglaunch-$1.service"
	mkdir "$work/units/sglaunch-$1.service.d"
	printf '[Service]\nEnvironmentFile=%s\nTimeoutStartSec=4\nRestartSec=200ms\nWatchdogSec=3\n' "$work/$1/env" >"$work/units/sglaunch-$1.service.d/check.conf"
}
unit good healthy 12
sed -i 's/^attempts = .*/attempts = 8/' "$work/good/launch.toml"
unit wrong bad-argument 60
unit stuck hang-at-shard 60
(cd "$work" && ./sglaunch unit --server.name=theirs -- /bin/sh -c 'trap "exit 0" TERM; echo alive; while :; do sleep 0.1; done') >"$work/units/sglaunch-theirs.service"
mkdir "$work/units/sglaunch-theirs.service.d"
printf '[Service]\nUser=nobody\n' >"$work/units/sglaunch-theirs.service.d/check.conf"

switch_on() {
	bash .ci/systemd/boot.sh "$work" </dev/null >"$work/boot.log" 2>&1 &
	boot=$!
}
switch_on

# shellcheck source=.ci/claims.sh
. .ci/claims.sh
show_why() { inside journalctl --no-pager -q -n 60 || cat "$work/boot.log"; }
inside() {
	local init
	init=$(pgrep -xP "$boot" systemd) || return 1
	nsenter -t "$init" -m -p -u -i -n -C -r -w "$@"
}
up() { case $(inside systemctl is-system-running) in running | degraded) ;; *) return 1 ;; esac; }
show() { inside systemctl show --value -p "$1" "$2"; }
is() { [ "$(show "$1" "$2")" = "$3" ]; }
over() { case $(show ActiveState "$1") in inactive | failed) ;; *) return 1 ;; esac; }
status() { inside "$work/sglaunch" status --json good; }
# field NAME reads a number of the status: a pid, an attempt.
field() { status | sed -nE "s/.*\"$1\":([0-9]+).*/\1/p"; }
says() { status | grep -q "$1"; }
told() { echo "  $* (${SECONDS}s)"; }

eventually 60 "systemd is up" up
told "systemd $(inside systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p') is up"
original=$(find "$work/good" -path '*model_executor/model_runner.py' -exec sha256sum {} +)
inside_whole() { [ "$(inside find "$work/good" -path '*model_executor/model_runner.py' -exec sha256sum {} +)" = "$original" ]; }

inside systemctl start --no-block sglaunch-good
eventually 30 "the unit tells the phase of its start" sh -c "$(declare -f inside show); boot=$boot; show StatusText sglaunch-good | grep -E 'loading_weights|graph_capture'"
expect "it is not active before it is ready" is ActiveState sglaunch-good activating
eventually 90 "the slow start is ready, past its TimeoutStartSec" is ActiveState sglaunch-good active
expect "nothing was restarted" is NRestarts sglaunch-good 0
expect "ready is told" says '"ready":true'
told "a start of several times TimeoutStartSec is extended and gets ready"

shim=$(show MainPID sglaunch-good)
server=$(field server)
inside kill -KILL "$(field supervisor)"
eventually 30 "a new supervisor answers" says '"ready":true'
expect "the server did not notice" [ "$(field server)" = "$server" ]
expect "the unit did not notice" is ActiveState sglaunch-good active
told "a killed supervisor is replaced, the server lives on"

heard() { [ -n "$(inside journalctl -q --no-pager -u "$1" -g "$2" -n 1)" ]; }
inside sed -i 's/^drain = "10s"/drain = "11s"/' "$work/good/launch.toml"
inside systemctl reload sglaunch-good
eventually 10 "the reload is told" heard sglaunch-good "reloaded: stop.drain from now on"
inside sed -i 's/^drain = .*/drain = "soon"/' "$work/good/launch.toml"
if inside systemctl reload sglaunch-good 2>/dev/null; then echo "a reload with a mistake succeeds" >&2; exit 1; fi
inside sed -i 's/^drain = .*/drain = "12s"/' "$work/good/launch.toml"
inside kill -HUP "$shim"
eventually 10 "SIGHUP reloads too" heard sglaunch-good 'reloaded: stop.drain from now on'
expect "the server did not notice" [ "$(field server)" = "$server" ]
told "systemctl reload and SIGHUP read launch.toml again, a mistake fails the reload, the server lives on"

inside cp "$work/sglaunch" "$work/sglaunch-2"
expect "the upgrade succeeds" inside "$work/sglaunch-2" upgrade good
expect "the new program supervises" [ "$(inside readlink "/proc/$(field supervisor)/exe")" = "$work/sglaunch-2" ]
expect "the server did not notice" [ "$(field server)" = "$server" ]
expect "the unit did not notice" is MainPID sglaunch-good "$shim"
expect "it is still active" is ActiveState sglaunch-good active
told "another program supervises, the server lives on"

sampler=$(inside pgrep -f '[_]_gpu-sampler')
inside kill -KILL "$sampler"
another_sampler() { local now; now=$(inside pgrep -f '[_]_gpu-sampler') && [ "$now" != "$sampler" ]; }
eventually 60 "another sampler reads the GPUs" another_sampler
expect "the server did not notice" [ "$(field server)" = "$server" ]
told "a killed sampler is replaced, the server lives on"

inside kill -KILL "$(inside pgrep -f '[s]glang::scheduler' | head -n 1)"
eventually 90 "the server of a killed rank is started again" says '"attempt":2,.*"ready":true'
inside kill -KILL "$(field server)"
eventually 90 "a killed server is started again" says '"attempt":3,.*"ready":true'
expect "the unit stays active" is ActiveState sglaunch-good active
expect "its main process is the same" is MainPID sglaunch-good "$shim"
told "a killed rank, a killed server: another attempt, the same unit"

inside "$work/sglaunch" restart good
eventually 90 "the next attempt is ready" says '"attempt":4,.*"ready":true'
expect "the unit stays active" is MainPID sglaunch-good "$shim"
told "sglaunch restart: another server, the same unit"

inside kill -KILL "$shim"
eventually 90 "systemd has started it again" is NRestarts sglaunch-good 1
eventually 90 "it is ready again" is ActiveState sglaunch-good active
expect "one server lives" [ "$(inside pgrep -cf launch_server)" -ge 1 ]
told "a killed shim: everything ended, started again"

begun=$SECONDS
inside systemctl stop sglaunch-good
expect "the stop is a success" is Result sglaunch-good success
expect "it stopped in time" [ $((SECONDS - begun)) -le 30 ]
expect "no process is left" [ -z "$(inside pgrep -f launch_server)" ]
expect "the patched file is what it was" inside_whole
told "stopped, nothing left, patch undone"

inside systemctl start --no-block sglaunch-good
eventually 30 "its server lives" says '"server":[1-9]'
inside "$work/sglaunch" stop --wait good
restarts=$(show NRestarts sglaunch-good)
eventually 10 "the unit has ended" over sglaunch-good
sleep 1 # longer than RestartSec
expect "what a person stopped stays stopped" is NRestarts sglaunch-good "$restarts"
if inside systemctl is-active -q sglaunch-good; then echo "a stopped launch came back" >&2; exit 1; fi
told "sglaunch stop during the start is final"

inside systemctl reset-failed sglaunch-good || true
inside systemctl start --no-block sglaunch-good
eventually 90 "it is ready" is ActiveState sglaunch-good active
patched() { ! inside_whole; }
expect "the file is patched while it serves" patched
inside sh -c 'echo 1 >/sys/fs/cgroup/system.slice/sglaunch-good.service/cgroup.kill'
eventually 30 "the file is restored after all was killed at one blow" inside_whole
inside systemctl stop sglaunch-good # it was about to start again
told "all killed at one blow: ExecStopPost restores the file"

inside systemctl start sglaunch-wrong 2>/dev/null || true
eventually 60 "the wrong one has failed" is ActiveState sglaunch-wrong failed
expect "with the code of a hopeless launch" is ExecMainStatus sglaunch-wrong 11
expect "and is not tried again" is NRestarts sglaunch-wrong 0
expect "and its status says why" sh -c "$(declare -f inside show); boot=$boot; show StatusText sglaunch-wrong | grep -q bad_argument"
told "an end that is final is not restarted"

inside systemctl start --no-block sglaunch-stuck
eventually 60 "the hang is found and a second attempt made" sh -c "$(declare -f inside show); boot=$boot; show StatusText sglaunch-stuck | grep -q 'attempt 2'"
eventually 90 "gave up, it is started again later" is NRestarts sglaunch-stuck 1
inside systemctl stop sglaunch-stuck
told "a hang in the start: found by sglaunch, not by systemd's timeout; given up, started again"

inside "$work/sglaunch" run --detach --server.name=apart -- /bin/sh -c 'trap "exit 0" TERM; echo alive; while :; do sleep 0.1; done' >"$work/apart"
expect "it says where the launch is" grep -q 'as the service sglaunch-run-apart.service' "$work/apart"
expect "the service runs" is SubState sglaunch-run-apart start
eventually 20 "its output is in the journal" heard sglaunch-run-apart alive
expect "no environment is on show" sh -c "$(declare -f inside show); boot=$boot; ! show Environment sglaunch-run-apart | grep -q PATH="
inside "$work/sglaunch" stop --wait apart
eventually 20 "the service is gone" is LoadState sglaunch-run-apart not-found
told "run --detach is a transient service; stopped by name, nothing is left of it"

person=$(id -u nobody)
inside systemctl start "user-runtime-dir@$person" "user@$person"
mkdir "$work/person"
chown nobody "$work/person"
# person COMMAND... is what somebody does who is not root and whose manager runs.
person() {
	inside setpriv --reuid "$person" --regid "$(id -g nobody)" --clear-groups \
		env -i PATH=/usr/bin:/bin HOME="$work/person" XDG_RUNTIME_DIR="/run/user/$person" "$@"
}
mine() { [ "$(person systemctl --user show --value -p "$1" sglaunch-run-mine)" = "$2" ]; }
person "$work/sglaunch" run --detach --server.name=mine -- /bin/sh -c 'trap "exit 0" TERM; echo alive; while :; do sleep 0.1; done' >"$work/mine"
expect "it says where the launch is" grep -q 'as your service sglaunch-run-mine.service' "$work/mine"
expect "the person's manager keeps it" mine SubState start
cgroup=$(person systemctl --user show --value -p ControlGroup sglaunch-run-mine)
serves() { person "$work/sglaunch" status --json mine | grep -q '"server":[1-9]'; }
eventually 20 "its server runs" serves
shown() { person systemctl --user show --value -p Environment sglaunch-run-mine | grep -q PATH=; }
if shown; then echo "the person's environment is on show" >&2; exit 1; fi
if person "$work/sglaunch" run --detach --server.name=brief -- /nonexistent/server >"$work/brief" 2>&1; then echo "what cannot start is said to run" >&2; exit 1; fi
expect "its end is seen at once" grep -q 'it ended at once' "$work/brief"
expect "it says where its words are" grep -q 'journalctl --user --unit sglaunch-run-brief.service' "$work/brief"
person "$work/sglaunch" stop --wait mine
eventually 20 "the service is gone" mine LoadState not-found
expect "no process is left in it" [ -z "$(inside cat "/sys/fs/cgroup$cgroup/cgroup.procs" 2>/dev/null)" ]
told "run --detach of a person is a service of their own manager; stopped by name, nothing is left of it"

journald=$(show MainPID systemd-journald)
inside kill -STOP "$journald"
inside "$work/sglaunch" run --detach --server.name=loud -- /bin/sh -c 'trap "exit 0" TERM; seq -f "%06.0f $1" 6000; : >"$0"; while :; do sleep 0.1; done' "$work/loud" "$(printf '%01000d' 0)" >/dev/null
eventually 60 "the server has printed all, and journald nothing" inside test -e "$work/loud"
inside kill -CONT "$journald"
eventually 60 "the last line is in the journal" heard sglaunch-run-loud '^006000 0'
expect "as is every other" [ "$(inside journalctl -q --no-pager -o cat -u sglaunch-run-loud | grep -cE '^[0-9]{6} 0{1000}$')" -eq 6000 ]
inside "$work/sglaunch" stop --wait loud
told "a journald that hangs holds nobody up, and gets every line later"

inside systemctl start --no-block sglaunch-good
eventually 90 "it is ready" is ActiveState sglaunch-good active
powercut
held=$(find "$work/disk/upper$work/good" -path '*model_executor/model_runner.py' -exec sha256sum {} + | cut -d' ' -f1)
expect "the disk holds the file" [ -n "$held" ]
expect "it is patched" [ "$held" != "${original%% *}" ]
mkdir "$work/units/check.target.wants"
ln -s ../sglaunch-good.service "$work/units/check.target.wants/"
switch_on
eventually 60 "systemd is up again" up
eventually 90 "the unit that was enabled is ready" is ActiveState sglaunch-good active
expect "recover has restored the file before anything was launched" sh -c "$(declare -f inside); boot=$boot
	inside journalctl -q --no-pager -b -o cat -u sglaunch-good | awk '/restored .*model_runner.py/ {healed = 1} /server is process/ {exit !healed}'"
expect "the new launch is patched again" patched
inside systemctl stop sglaunch-good
expect "the patched file is what it was" inside_whole
told "a boot after a power cut: the file is restored, then the server starts"

inside systemctl start --no-block sglaunch-theirs
theirs() { inside "$work/sglaunch" status --json theirs | grep -q '"server":[1-9]'; }
eventually 20 "root sees the launch of another user" theirs
inside "$work/sglaunch" stop --wait theirs
eventually 10 "the unit has ended" over sglaunch-theirs
expect "nothing there has become root's" [ -z "$(inside find /var/lib/sglaunch -not -user nobody)" ]
told "root asks and stops the launch of a unit with User="

inside systemctl poweroff -ff >/dev/null 2>&1 || true
wait "$boot" 2>/dev/null || true
boot=
echo "the unit works on a real systemd"
