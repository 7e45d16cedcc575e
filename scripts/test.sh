#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [--fast|--slow]: builds, and runs the tests that are labelled so (docs/developing.md): without a
# choice all but the slow ones, for which there are smoke tests. The published inputs and results are read
# from TRAINYARD_REFERENCE, by default ../shared. Where they are not there, or only the inputs are
# (docs/reference.md), the last lines say what was left out; published results whose inputs can be generated
# are checked all the same.
set -eu
cd "$(dirname "$0")/.."
labels='fast|golden|live'
for argument in "$@"; do
  case "$argument" in
    --fast) labels=fast ;;
    --slow) labels=slow ;;
    *)
      echo "usage: ./dev test [--fast|--slow]" >&2
      exit 2 ;;
  esac
done
unset TRAINYARD_WITHOUT_REFERENCE
reference=$(realpath -m "${TRAINYARD_REFERENCE:-../shared}")
if [ ! -f "$reference/golden/manifest.csv" ]; then
  export TRAINYARD_WITHOUT_REFERENCE=1
  if [ -n "${TRAINYARD_REFERENCE:-}" ] && [ ! -d "$reference/data" ]; then
    echo "test: no published inputs at $reference, which TRAINYARD_REFERENCE names: put them together as" \
      "docs/reference.md says, or unset it to leave out what needs them" >&2
    exit 2
  fi
fi
if [ "$labels" = fast ]; then
  scripts/build.sh release fast_tests
else
  scripts/build.sh release
fi
if [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ] && [ ! -d "$reference/data" ] && [ "$labels" != fast ]; then
  reference=$PWD/build/generated
  scripts/generated_inputs.py build/release/trainyard "$reference"
fi
export TRAINYARD_REFERENCE="$reference"
ctest --preset release -L "^($labels)\$"
log=build/release/Testing/Temporary/LastTest.log
# What a kernel refuses is no failure, but nor is it a test. In CI nothing else may be left out.
awk '/^not checked: this kernel/ { on = 1 } /^\[/ { on = 0 } on' "$log"
if [ -n "${CI:-}" ] && [ -z "${TRAINYARD_WITHOUT_REFERENCE:-}" ] && scripts/skipped.py "$log"; then
  echo "test: these tests were skipped, in CI, where only what the kernel refuses may be absent" >&2
  exit 1
fi
if [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ]; then
  echo "left out, for lack of the published inputs or results:"
  awk '/^[0-9]+\/[0-9]+ Test: / { name = $3; what = "" }
       /needs the published inputs/ && what == "" { what = "all" }
       /^\[  SKIPPED \]/ && what != "" { what = $4 ($4 == 1 ? " test" : " tests") }
       / without their inputs$/ { what = $0 }
       /^<end of output>/ && what != "" { print "  " name ": " what }' \
    "$log"
  echo "docs/reference.md says where they come from; then: TRAINYARD_REFERENCE=FOLDER ./dev test"
fi
