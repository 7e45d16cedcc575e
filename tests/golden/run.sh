#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SOURCE [a-dozen]: every published result of the policies that are built must be
# equal, but for the cases of known_differences.csv, which must be near; or a dozen of them.
set -eu
program=$1
source=$2
what=${3:-}
reference=${TRAINYARD_REFERENCE:-$source/../shared}
if [ -n "${TRAINYARD_WITHOUT_REFERENCE:-}" ] &&
  ! "$source/scripts/reference.py" "$reference" >/dev/null 2>&1; then
  echo "not checked: needs the published inputs"
  exit 77
fi
set -- "$source/tests/golden/manifest.csv" --reference "$reference"
if [ "$what" = a-dozen ]; then
  cases=$(grep -v '^#' "$source/tests/golden/a_dozen.txt" | paste -sd '|')
  exec "$program" "$@" --filter "^($cases)\$" --expect 12
fi
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
"$program" "$@" --supported --expect 213 --known "$source/tests/golden/known_differences.csv" \
  --digests "$source/tests/digests.csv" --source "$source" --cpu "$files"
