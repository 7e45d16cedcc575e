#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same scripts for a real Slurm and for Trainyard (tests/slurm/twin.py; --help).
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard
PYTHONPATH=tests/support exec /usr/bin/python3 -B tests/slurm/twin.py build/release/trainyard "$@"
