#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SOURCE: every published result of the policies that are built must be equal, but for
# the cases of known_differences.csv, which must be near.
set -eu
reference=${TRAINYARD_REFERENCE:-$2/../shared}
if [ ! -f "$reference/golden/manifest.csv" ]; then
  echo "skipped: no published results at $reference (set TRAINYARD_REFERENCE)"
  exit 77
fi
exec "$1" --reference "$reference" --supported --expect 197 \
  --known "$2/tests/golden/known_differences.csv"
