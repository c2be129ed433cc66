#!/bin/sh
# Checks on a machine with an NVIDIA GPU what the tests elsewhere can only check
# on a stand-in: that the figures of the real driver arrive, that allocation,
# memory traffic and a spin look as the verdicts take them to look, that the
# memory of a killed process is seen to come free, and what sampling costs.
#
#   bench/gpu-check.sh            everything; under 5 minutes, most of it the build
#   bench/gpu-check.sh build      only builds bench/gpu-check.test, to be carried
#                                 to a machine without Go
#
# It needs the driver (with nvidia-smi), python3, and Go with a C compiler unless
# bench/gpu-check.test was built before. It takes 8 GiB of GPU 0 for some
# seconds, and leaves the GPU's settings alone.
set -eu
cd "$(dirname "$0")/.."
binary=bench/gpu-check.test

build() {
	echo "building $binary"
	go test -c -tags gpu -o "$binary" ./internal/gpu
}

if [ "${1:-}" = build ]; then
	build
	exit
fi
for tool in nvidia-smi python3; do
	command -v "$tool" >/dev/null || { echo "cannot check: there is no $tool" >&2; exit 1; }
done
[ -x "$binary" ] || build
SGLAUNCH_GPU_LOAD="$PWD/bench/gpu_load.py"
export SGLAUNCH_GPU_LOAD
exec "$binary" -test.run '^TestReal' -test.v -test.timeout 4m
