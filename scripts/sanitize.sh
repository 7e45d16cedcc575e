#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The fast tests under the address and undefined-behaviour sanitizers, built with clang, and those of
# the parts that have threads under the thread sanitizer; not what calls over gRPC (src/rpc,
# LiveReplayTest, StartTest): Debian's hands things from thread to thread in ways that the sanitizer cannot see.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export LSAN_OPTIONS="suppressions=$here/lsan.supp"
cd "$here/.."
TRAINYARD_REFERENCE=$(realpath "${TRAINYARD_REFERENCE:-../shared}" 2>/dev/null || true)
export TRAINYARD_REFERENCE
scripts/build.sh asan fast_tests trainyard-golden
# The rules of the source tree and the scripts are no code of the product.
ctest --preset asan -L "^fast$" -E "^(structure_test|setup|release|golden_scripts|kills_checker)$"
ctest --preset asan -R "^golden/published$"
scripts/build.sh tsan supervisor_test live_test daemon_test store_test
for test in supervisor live daemon store; do
  build/tsan/src/$test/${test}_test --gtest_brief=1 --gtest_filter=-LiveReplayTest.*:StartTest.*
done
