#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Controller and agents in a pretended world in which everything goes wrong; see --help.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard-faults
exec build/release/trainyard-faults "$@"
