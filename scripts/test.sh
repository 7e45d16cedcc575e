#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs all tests: release for what users run, debug with assertions for the rest.
set -eu
cd "$(dirname "$0")/.."
TRAINYARD_REFERENCE=$(realpath "${TRAINYARD_REFERENCE:-../shared}" 2>/dev/null || true)
export TRAINYARD_REFERENCE
scripts/build.sh release
scripts/build.sh dev
ctest --preset dev
