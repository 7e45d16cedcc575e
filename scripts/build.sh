#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh PRESET [TARGET...]: configures and builds one CMake preset.
set -eu
export CCACHE_BASEDIR="$(cd "$(dirname "$0")/.." && pwd)" CCACHE_NOHASHDIR=1
cd "$(dirname "$0")/.."
preset=$1
shift
cmake --preset "$preset" >/dev/null
if [ $# -gt 0 ]; then
  cmake --build --preset "$preset" --target "$@"
else
  cmake --build --preset "$preset"
fi
