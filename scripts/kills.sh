#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kills.sh [N]: controller, agents and supervisors of a real cluster on this machine, and what steps of
# scripts consist of, killed N times while jobs come, run and end (docs/guarantees.md).
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard
kills=${1:-1000}
[ $# -eq 0 ] || shift
exec /usr/bin/python3 -B tests/kills/kills.py --trainyard build/release/trainyard --kills "$kills" "$@"
