#!/usr/bin/env bash
# Breaks rules of the machine and of a tuner's night, one at a time, and sees the
# tests notice: a sample drawn by the day, or all of them with SGLAUNCH_LONG=1.
set -euo pipefail
cd "$(dirname "$0")/../.."

sample=(-sample 60 -seed "$(date +%j)")
if [ "${SGLAUNCH_LONG:-}" = 1 ]; then sample=(); fi
go run ./supervisor/mutants "${sample[@]}"
if [ "${SGLAUNCH_LONG:-}" != 1 ]; then sample[1]=20; fi # each costs a few nights
go run ./supervisor/mutants -room internal/tune "${sample[@]}"
