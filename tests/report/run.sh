#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SOURCE [smoke]: makes a report of the example and opens it in headless Chromium;
# smoke: it opens, without looking at all that can be done with it.
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$2"
"$1" compare data/example_trace.csv --cluster data/example_cluster.toml \
  --profiles data/example_profiles.csv --policy fifo --policy srtf --policy las \
  --policy tiresias --out "$out" >/dev/null
cd web
export REPORT_HTML=$out/report.html
if [ "${3:-}" = smoke ]; then
  exec node --test --test-name-pattern='^(layout at|names with markup)' test/report.test.mjs
fi
npm test --silent
