#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares with the published results; further arguments go to trainyard-golden.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard-golden
exec build/release/trainyard-golden --reference "${TRAINYARD_REFERENCE:-../shared}" "$@"
