#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SOURCE [a-dozen]: every published result of the policies that are built must be
# equal, but for the cases of known_differences.csv, which must be near; or a dozen of them. Where
# the run was told that inputs are absent, only those cases count whose inputs are there.
set -eu
program=$1
source=$2
what=${3:-all}
reference=${TRAINYARD_REFERENCE:-$source/../shared}
if [ ! -d "$reference/data" ]; then
  [ -z "${TRAINYARD_WITHOUT_REFERENCE:-}" ] || {
    echo "not checked: needs the published inputs"
    exit 77
  }
  echo "no published inputs at $reference (set TRAINYARD_REFERENCE)" >&2
  exit 1
fi
set -- "$source/tests/golden/manifest.csv" --reference "$reference" --supported \
  --known "$source/tests/golden/known_differences.csv"
if [ "$what" = a-dozen ]; then
  cases=$(grep -v '^#' "$source/tests/golden/a_dozen.txt" | paste -sd '|')
  set -- "$@" --filter "^($cases)\$"
fi
if [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ] &&
  ! "$source/scripts/reference.py" "$reference" >/dev/null 2>&1; then
  exec "$program" "$@" --present
fi
if [ "$what" = a-dozen ]; then
  exec "$program" "$@" --expect 12
fi
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
"$program" "$@" --expect 214 --digests "$source/tests/digests.csv" --source "$source" --cpu "$files"
