#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All tests under the address and undefined-behaviour sanitizers.
set -eu
cd "$(dirname "$0")/.."
TRAINYARD_REFERENCE=$(realpath "${TRAINYARD_REFERENCE:-../shared}" 2>/dev/null || true)
export TRAINYARD_REFERENCE
scripts/build.sh asan
ctest --preset asan
