#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the tables of docs/comparison.md anew (needs the reference folder).
set -eu
cd "$(dirname "$0")/.."
reference=${TRAINYARD_REFERENCE:-../shared}
if [ ! -f "$reference/golden/manifest.csv" ]; then
  echo "comparison: no reference folder at $reference (set TRAINYARD_REFERENCE)" >&2
  exit 1
fi
scripts/build.sh release trainyard
exec node scripts/comparison.mjs build/release/trainyard "$reference" docs/comparison.md
