#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SOURCE [a-dozen]: every published result of the policies that are built must be
# equal, but for the cases of known_differences.csv, which must be near; or a dozen of them.
set -eu
reference=${TRAINYARD_REFERENCE:-$2/../shared}
if [ ! -f "$reference/golden/manifest.csv" ]; then
  [ -z "${TRAINYARD_WITHOUT_REFERENCE:-}" ] || {
    echo "not checked: needs the published results"
    exit 77
  }
  echo "no published results at $reference (set TRAINYARD_REFERENCE)" >&2
  exit 1
fi
if [ "${3:-}" = a-dozen ]; then
  cases=$(grep -v '^#' "$2/tests/golden/a_dozen.txt" | paste -sd '|')
  exec "$1" --reference "$reference" --filter "^($cases)\$" --expect 12
fi
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
"$1" --reference "$reference" --supported --expect 213 \
  --known "$2/tests/golden/known_differences.csv" \
  --digests "$2/tests/digests.csv" --source "$2" --cpu "$files"
