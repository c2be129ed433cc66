#!/usr/bin/env bash
# Fuzzes each target for a moment. The seeds run with every go test; this looks
# a little further.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${SGLAUNCH_LONG:-}" ]; then
	echo "the seeds of every fuzz target ran with go test; SGLAUNCH_LONG=1 looks further"
	exit 0
fi
runs=${SGLAUNCH_FUZZ_RUNS:-2000}

git ls-files '*_test.go' | xargs grep -lE '^func Fuzz' | xargs -n 1 dirname | sort -u | while read -r folder; do
	sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$folder"/*_test.go | while read -r target; do
		echo "$folder $target"
		go test "./$folder" -run '^$' -fuzz "^$target\$" -fuzztime "${runs}x" </dev/null
	done
done
