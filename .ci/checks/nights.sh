#!/usr/bin/env bash
# Plays the random nights in full, which the race detector is too slow for, and
# prints the time served beside that of an operator who knew every cause at
# once. SGLAUNCH_LONG=1 plays 100,000.
set -euo pipefail
cd "$(dirname "$0")/../.."

go test ./supervisor/machine -run '^(TestNights|TestServedTime)$' -count=1 -timeout 14m -v | grep -v '^=== '
