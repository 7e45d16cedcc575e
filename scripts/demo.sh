#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The policies on the example trace: a table here, a report to open in a browser.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard
build/release/trainyard compare data/example_trace.csv --cluster data/example_cluster.toml \
  --profiles data/example_profiles.csv --policy fifo --policy fjf --policy sjf --policy srtf \
  --policy las --policy tiresias --policy edf --policy elasticflow --out out/demo
echo "open $(pwd)/out/demo/report.html in a browser"
