#!/usr/bin/env bash
# Asks `sglaunch explain` about the labelled outputs of real launches in
# SGLAUNCH_CORPUS, by the scorer that lies beside them. No healthy launch may be
# called failed, and of all else 95 of 100 answers must be right.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${SGLAUNCH_CORPUS:-}" ]; then
	echo "not checked here: SGLAUNCH_CORPUS names no labelled outputs"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/" ./cmd/sglaunch
python3 "$SGLAUNCH_CORPUS/score.py" "$work/sglaunch" "$SGLAUNCH_CORPUS" -v | tee "$work/score"
awk -F ': ' '
	/ = [0-9.]+ %$/ {
		seen++
		share = $2; sub(/.* = /, "", share)
		least = $1 ~ /alarms/ ? 100 : 95
		if (share + 0 < least) { print $1 ": less than " least " %"; bad = 1 }
	}
	END { exit bad || !seen }' "$work/score"
