#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [--fast|--slow] [--without-reference]: builds, and runs the tests that are labelled so
# (CONTRIBUTING.md): without a choice all but the slow ones, for which there are smoke tests. Without the
# published inputs it must be told so, and says at the end what it did not check.
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
reference=$(realpath "${TRAINYARD_REFERENCE:-../shared}")
if [ -f "$reference/golden/manifest.csv" ]; then
  export TRAINYARD_REFERENCE="$reference"
  unset TRAINYARD_WITHOUT_REFERENCE
elif [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ] && [ -z "${CI:-}" ]; then
  unset TRAINYARD_REFERENCE
else
  echo "test: no published inputs at $reference: set TRAINYARD_REFERENCE to their folder, or say" \
    "--without-reference to leave out the tests that need them (not in CI)" >&2
  exit 2
fi
# What the debug build is compared with.
if [ "$labels" = fast ]; then
  scripts/build.sh dev fast_tests
else
  scripts/build.sh release trainyard trainyard-golden
  scripts/build.sh dev
fi
ctest --preset dev -L "^($labels)\$"
if [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ]; then
  echo "not checked, for lack of the published inputs:"
  grep -oE '\[  SKIPPED \] [^ ,]+|^ *[0-9]+ - golden/published.*Skipped' \
    build/dev/Testing/Temporary/LastTest.log | sort -u
fi
