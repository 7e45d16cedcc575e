#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [--fast|--slow] [--without-reference]: builds, and runs the tests that are labelled so
# (CONTRIBUTING.md): without a choice all but the slow ones, for which there are smoke tests. Where the
# folder of the published inputs and results is missing, or has the inputs only (docs/reference.md), it
# must be told so, and says at the end what it did not check; never in CI.
set -eu
cd "$(dirname "$0")/.."
labels='fast|golden|live'
for argument in "$@"; do
  case "$argument" in
    --fast) labels=fast ;;
    --slow) labels=slow ;;
    --without-reference) export TRAINYARD_WITHOUT_REFERENCE=1 ;;
    *)
      echo "usage: ./dev test [--fast|--slow] [--without-reference]" >&2
      exit 2 ;;
  esac
done
if [ -n "${CI:-}" ] && [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ]; then
  echo "test: --without-reference is not for CI, which checks everything" >&2
  exit 2
fi
reference=$(realpath -m "${TRAINYARD_REFERENCE:-../shared}")
if [ -f "$reference/golden/manifest.csv" ]; then
  unset TRAINYARD_WITHOUT_REFERENCE
elif [ -z "${TRAINYARD_WITHOUT_REFERENCE:-}" ]; then
  echo "test: no published inputs and results at $reference: set TRAINYARD_REFERENCE to their folder," \
    "or say --without-reference to leave out the tests that need them (docs/reference.md)" >&2
  exit 2
fi
export TRAINYARD_REFERENCE="$reference"
# What the debug build is compared with.
if [ "$labels" = fast ]; then
  scripts/build.sh dev fast_tests
else
  scripts/build.sh release trainyard trainyard-golden trainyard-portable
  scripts/build.sh dev
fi
ctest --preset dev -L "^($labels)\$"
# What a kernel refuses is no failure, but nor is it a test. In CI nothing else may be left out.
log=build/dev/Testing/Temporary/LastTest.log
awk '/^not checked: this kernel/ { on = 1 } /^\[/ { on = 0 } on' "$log"
if [ -n "${CI:-}" ] && scripts/skipped.py "$log"; then
  echo "test: these tests were skipped, in CI, where only what the kernel refuses may be absent" >&2
  exit 1
fi
if [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ]; then
  echo "not checked, for lack of the published inputs or results:"
  awk '/^[0-9]+\/[0-9]+ Test: / { name = $3; what = "" }
       /needs the published inputs/ && what == "" { what = "all" }
       /^\[  SKIPPED \]/ && what != "" { what = $4 ($4 == 1 ? " test" : " tests") }
       / without their inputs$/ { what = $0 }
       /^<end of output>/ && what != "" { print "  " name ": " what }' \
    build/dev/Testing/Temporary/LastTest.log
  echo "docs/reference.md says where they come from"
fi
