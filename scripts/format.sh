#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs clang-format-14 -i
