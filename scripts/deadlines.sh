#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What policy elasticflow makes of the published traces, beside the published program.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release deadlines_test
exec build/release/tests/deadlines_test --gtest_brief=1 "$@"
