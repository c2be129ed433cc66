#!/usr/bin/env bash
# The founding patch on real SGLang releases: the state it reaches on each, and
# that the revert leaves the package identical. One release of each layout
# family here; all that the package index has with SGLAUNCH_LONG=1.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -n "${SGLAUNCH_LONG:-}" ]; then
	exec go run ./.ci/patch-releases -all
fi
exec go run ./.ci/patch-releases
