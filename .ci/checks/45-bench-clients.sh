#!/usr/bin/env bash
# The benchmark clients of real SGLang releases, by the commands that a night
# uses and read as a night reads them: what they write when a server answers,
# refuses some and refuses all. vLLM's wheels have half a gigabyte each: with
# SGLAUNCH_LONG=1.
set -euo pipefail
cd "$(dirname "$0")/../.."
go run ./.ci/bench-clients
if [ -n "${SGLAUNCH_LONG:-}" ]; then
	go run ./.ci/bench-clients -kind vllm 0.9.2 0.14.0 0.20.2
fi
