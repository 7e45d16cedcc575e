#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [SECONDS [TARGET...]]: what reads bytes that others have written, fed by libFuzzer, SECONDS (300)
# of CPU time for each target. What it finds lies in out/fuzz/TARGET, an input that breaks its target as crash-*: mend
# what is wrong and put it into tests/fuzz/corpus/TARGET, where fuzz_corpus_test runs it. A later run begins
# with what earlier ones have found. The line of a target: scripts/fuzz_report.py says what is in it.
set -eu
cd "$(dirname "$0")/.."
[ -n "${TRAINYARD_FUZZ_BUILT:-}" ] || scripts/build.sh fuzz trainyard-fuzz
program=$PWD/build/fuzz/trainyard-fuzz
seconds=${1:-300}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $("$program")
export ASAN_SYMBOLIZER_PATH="${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-14 || true)}"
# Many readers take a file: one that is written over on a disk waits for that.
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
status=0
for target in "$@"; do
  found=$PWD/out/fuzz/$target
  mkdir -p "$found"
  export TRAINYARD_FUZZ_TARGET="$target"
  TRAINYARD_FUZZ_SEEDS="$found" "$program"
  corpus=tests/fuzz/corpus/$target
  [ -d "$corpus" ] || corpus=
  # Words to put in: those of the inputs.
  cat "$found"/seed-* ${corpus:+"$corpus"/*} 2>/dev/null | grep -aoE '[A-Za-z_][A-Za-z0-9_-]{2,}' | sort -u |
    sed 's/.*/"&"/' >"$found.words" || true
  TRAINYARD_FUZZ_CPU=$seconds "$program" -max_total_time=$((20 * seconds)) -timeout=60 -rss_limit_mb=3000 \
    -max_len=8192 -detect_leaks=0 -entropic=0 -dict="$found.words" \
    -print_final_stats=1 -artifact_prefix="$found/" "$found" $corpus >"$found.log" 2>&1 ||
    { status=1; echo "$target: FOUND SOMETHING, see $found.log"; }
  "$program" -runs=0 -print_coverage=1 -detect_leaks=0 -artifact_prefix="$found/" "$found" $corpus \
    >"$found.coverage" 2>&1 || true
  scripts/fuzz_report.py "$target" "$found"
done
exit $status
