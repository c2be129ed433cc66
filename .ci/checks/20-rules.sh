#!/usr/bin/env bash
# Proves the rules against real releases: every literal stands in the source of
# each release that its rule claims. Prints the table of rule by release.
set -euo pipefail
cd "$(dirname "$0")/../.."

releases=(0.4.1 0.4.4 0.4.6 0.4.9 0.5.2 0.5.4 0.5.6 0.5.8 0.5.9 0.5.10 0.5.12 0.5.14 0.5.16 0.5.18 0.5.20 0.5.23)
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
for release in "${releases[@]}"; do
	python3 -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 --dest "$wheels" "sglang==$release"
done
go run ./phases/conformance "$wheels"
