#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formatting, one definition of each type, and clang-tidy over the library and the program; a
# warning is an error.
set -eu
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs clang-format-14 --dry-run --Werror
scripts/sources.sh | xargs scripts/one-definition.py
# clang-tidy reads the commands of a build, and the headers that the build makes.
scripts/build.sh dev trainyard_proto trainyard_services
scripts/sources.sh | grep -E '^(src|bench)/.*\.cc$' | grep -v '_test\.cc$' |
  xargs scripts/tidy.py build/dev
echo "format and lint: clean"
