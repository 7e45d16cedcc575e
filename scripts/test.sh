#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs all tests in debug with assertions; the release program for what they compare with.
set -eu
cd "$(dirname "$0")/.."
TRAINYARD_REFERENCE=$(realpath "${TRAINYARD_REFERENCE:-../shared}" 2>/dev/null || true)
export TRAINYARD_REFERENCE
scripts/build.sh release trainyard
scripts/build.sh dev
ctest --preset dev
