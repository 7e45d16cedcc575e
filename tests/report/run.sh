#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SOURCE: makes a report of the example and opens it in headless Chromium.
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$2"
"$1" compare data/example_trace.csv --cluster data/example_cluster.toml \
  --profiles data/example_profiles.csv --policy fifo --policy srtf --policy las \
  --policy tiresias --out "$out" >/dev/null
cd web
REPORT_HTML=$out/report.html npm test --silent
