#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh [RUNS]: speed and memory against the targets; fails where one is missed.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard whole_runs decisions live_starts
status=0
build/release/bench/whole_runs build/release/trainyard build/bench "${1:-3}" || status=$?
build/release/bench/decisions --benchmark_min_time=0.2
build/release/bench/live_starts || status=$?
exit $status
