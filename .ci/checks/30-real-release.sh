#!/usr/bin/env bash
# A real SGLang release, installed without its GPU stack: sglaunch names the
# import error as the cause and ends with 11, after one attempt, without
# burning the budget. Needs pip and the package index.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=${SGLANG_VERSION:-0.5.9}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/sglaunch" ./cmd/sglaunch
python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :none: -d "$work" "sglang==$version"
python3 -m venv --without-pip "$work/venv"
site=$("$work/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
(cd "$site" && python3 -m zipfile -e "$work"/sglang-*.whl .)
mkdir "$work/model"
echo '{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}' >"$work/model/config.json"
: >"$work/model/model.safetensors"

code=0
SGLAUNCH_STATE="$work/state" timeout 120 "$work/sglaunch" run -- \
	"$work/venv/bin/python" -m sglang.launch_server --model-path "$work/model" --load-format dummy --tp 1 \
	>"$work/out" 2>"$work/err" || code=$?
cat "$work/err"
[ "$code" -eq 11 ] || { echo "exit code $code, want 11" >&2; exit 1; }
grep -q 'import_error' "$work/err" || { echo "the import error is not named" >&2; exit 1; }
attempts=$(find "$work"/state/launches/*/attempts -mindepth 1 -maxdepth 1 | wc -l)
[ "$attempts" -eq 1 ] || { echo "$attempts attempts, want 1" >&2; exit 1; }
cmp "$work/out" "$work"/state/launches/*/attempts/1/server.log
echo "sglang $version without its GPU stack: import_error, exit code 11, one attempt"
