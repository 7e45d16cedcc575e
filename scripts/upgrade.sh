#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# upgrade.sh [COMMIT]: controller, agents and supervisors of this tree beside those of COMMIT (the last
# release), as while a cluster is upgraded and rolled back (docs/operations.md).
set -eu
cd "$(dirname "$0")/.."
former=${1:-$(git log -1 --format=%h --grep '^Release [0-9.]*$')}
scripts/build.sh release live_cluster_test
mkdir -p build/former
git archive "$former" | tar -x -C build/former
build/former/scripts/build.sh release trainyard
program=$(realpath build/former/build/release/trainyard)
echo "beside $("$program" --version) ($former)"
TRAINYARD_FORMER=$program exec build/release/tests/live_cluster_test --gtest_filter='VersionsTest.*'
