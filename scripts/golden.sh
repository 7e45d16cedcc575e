#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# golden.sh [MANIFEST] [OPTION...]: compares with the published results, those of this repository unless
# the first argument is another manifest; options go to trainyard-golden.
set -eu
cd "$(dirname "$0")/.."
reference=${TRAINYARD_REFERENCE:-../shared}
if [ ! -d "$reference/data" ]; then
  echo "golden: no published inputs at $reference: set TRAINYARD_REFERENCE to their folder" \
    "(docs/reference.md says how to put it together)" >&2
  exit 2
fi
scripts/build.sh release trainyard-golden
case "${1:-}" in
  '' | -*) set -- tests/golden/manifest.csv "$@" ;;
esac
exec build/release/trainyard-golden "$@" --reference "$reference"
