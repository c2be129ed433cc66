# What a check of .ci/checks claims, for checks that source this. Where a claim is
# false the check ends, after show_why, which each check has of its own, has printed
# what explains it.

# eventually SECONDS WHAT COMMAND... polls a real condition.
eventually() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || untrue "it never happened that $what"
		sleep 0.1
	done
}

# expect WHAT COMMAND... holds now.
expect() { "${@:2}" || untrue "not so: $1"; }

untrue() {
	echo "$1" >&2
	show_why >&2 || true
	exit 1
}
