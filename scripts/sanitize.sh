#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All tests under the address and undefined-behaviour sanitizers, and those of the parts that have
# threads under the thread sanitizer; not src/rpc: Debian's gRPC hands things from thread to thread in
# ways that the sanitizer cannot see. live/fidelity_* measure time, which sanitizers take.
set -eu
export LSAN_OPTIONS="suppressions=$(cd "$(dirname "$0")" && pwd)/lsan.supp"
cd "$(dirname "$0")/.."
TRAINYARD_REFERENCE=$(realpath "${TRAINYARD_REFERENCE:-../shared}" 2>/dev/null || true)
export TRAINYARD_REFERENCE
scripts/build.sh asan
ctest --preset asan -E '^live/fidelity'
scripts/build.sh tsan supervisor_test live_test daemon_test store_test faults_test
for test in src/supervisor/supervisor_test src/live/live_test src/daemon/daemon_test \
  src/store/store_test; do
  build/tsan/$test --gtest_brief=1
done
# One shard of the simulated faults: they have one thread, and a seed takes a quarter of a second.
build/tsan/tests/faults_test --gtest_brief=1 --gtest_filter='FaultSimulation.*:*/0'
