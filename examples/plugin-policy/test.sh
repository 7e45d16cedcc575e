#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh TRAINYARD PLUGIN: four jobs on two GPUs start and end as expected.csv says.
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$1" --plugin "$2" simulate trace.csv --cluster 1x2 --policy slack --out "$out" >/dev/null
cut -d, -f1,7,8,12 "$out/jobs.csv" | diff expected.csv -
