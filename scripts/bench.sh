#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh [RUNS]: speed and memory against the targets; fails where one is missed. Those against
# the published programs need their inputs (docs/reference.md).
# bench.sh --against PROGRAM... [OPTION...]: beside other builds of the program (bench/against.py).
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --against ]; then
  shift
  scripts/build.sh release trainyard
  exec bench/against.py "$@" build/release/trainyard
fi
scripts/build.sh release trainyard whole_runs decisions live_starts trainyard-golden
status=0
build/release/bench/whole_runs build/release/trainyard build/bench "${1:-3}" || status=$?
build/release/bench/decisions --benchmark_min_time=0.2 | tee build/bench/decisions.txt
# A decision of Muri with 1,000 jobs in a bucket: milliseconds of the wall clock.
awk '/^GroupAThousandJobs/ { slow += $2 >= 50; print $1 ": " $2 " ms, less than 50 expected  " \
       ($2 < 50 ? "ok" : "MISSED"); n++ } END { exit slow > 0 || n == 0 }' \
  build/bench/decisions.txt || status=1
build/release/bench/live_starts || status=$?
reference=${TRAINYARD_REFERENCE:-../shared}
if [ -d "$reference/data" ]; then
  # In memory: what a disk's driver takes for new files is not the program's.
  results=$(mktemp -d -p /dev/shm)
  trap 'rm -rf "$results"' EXIT
  trap 'exit 130' INT TERM
  # The last lines are the targets; cases that differ are the business of `./dev golden`.
  build/release/trainyard-golden tests/golden/manifest.csv --reference "$reference" --cpu "$results" \
    --filter '^(blox|elasticflow|synergy|chronus|muri/trace1)/' --least blox=300 \
    --least elasticflow=300 --least synergy=300 --least muri/trace1/=100 --least chronus=25 \
    >build/bench/golden.txt || true
  grep ' expected  ' build/bench/golden.txt || status=1
  ! grep -q 'MISSED$' build/bench/golden.txt || status=1
else
  echo "left out: no published inputs at $reference (set TRAINYARD_REFERENCE)"
fi
exit $status
