#!/usr/bin/env bash
# Holds docs/dependencies.md against the code: each module that a package of
# ours imports is on the page with the version of go.mod, and no other is.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Folders with a go.mod of their own are other modules.
mapfile -t apart < <(git ls-files '.ci/**/*.go' | xargs -r -n 1 dirname | sort -u | while read -r d; do [ -e "$d/go.mod" ] || echo "./$d"; done)
imported=$(go list -f '{{range .Imports}}{{println .}}{{end}}{{range .TestImports}}{{println .}}{{end}}{{range .XTestImports}}{{println .}}{{end}}' ./... "${apart[@]}" |
	grep -E '^[a-z0-9.-]+\.[a-z]+/' | sort -u |
	xargs go list -f '{{.Module.Path}} {{.Module.Version}}' | sort -u)
listed=$(sed -nE 's/^\| ([a-z]+\.[^ ]+) \| (v[^ ]+) \|.*/\1 \2/p' docs/dependencies.md | grep -v '^honnef.co/' | sort -u)

if ! diff <(echo "$imported") <(echo "$listed"); then
	echo "docs/dependencies.md differs: < is imported, > is listed" >&2
	exit 1
fi
echo "$(wc -l <<<"$listed") modules are imported and explained"
