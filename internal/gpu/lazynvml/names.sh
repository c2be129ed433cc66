#!/bin/sh
# Writes names.h: every NVML function that the go-nvml of go.mod calls.
set -eu
dir=$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml
{
	echo "/* Made by names.sh; see doc.go. */"
	grep -oh 'C\.nvml[A-Za-z0-9_]*(' "$dir"/*.go | sed 's/C\.\(.*\)(/NVML_FUNCTION(\1)/' | LC_ALL=C sort -u
} >names.h
