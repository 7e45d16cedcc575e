#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [SECONDS [TARGET...]]: what reads bytes that others have written, fed by libFuzzer, SECONDS (300)
# for each target. What it finds lies in out/fuzz/TARGET, an input that breaks its target as crash-*: mend
# what is wrong and put it into tests/fuzz/corpus/TARGET, where fuzz_corpus_test runs it.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh fuzz trainyard-fuzz
program=$PWD/build/fuzz/trainyard-fuzz
seconds=${1:-300}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $("$program")
status=0
for target in "$@"; do
  found=$PWD/out/fuzz/$target
  mkdir -p "$found"
  export TRAINYARD_FUZZ_TARGET="$target"
  TRAINYARD_FUZZ_SEEDS="$found" "$program"
  "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=8192 -detect_leaks=0 \
    -artifact_prefix="$found/" "$found" "tests/fuzz/corpus/$target" >"$found.log" 2>&1 ||
    { status=1; echo "$target: FOUND SOMETHING, see $found.log"; }
  echo "$target: $(grep -a '^Done\|^stat::number_of' "$found.log" | tail -1), $(grep -ao 'cov: [0-9]*' \
    "$found.log" | tail -1), $(ls "$found" | grep -c '^crash\|^timeout\|^oom' || true) findings"
done
exit $status
