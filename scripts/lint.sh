#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formatting, the pages of the public headers, and over the library and the program: whether each file
# compiles by itself, and clang-tidy; a warning is an error.
set -eu
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs clang-format-14 --dry-run --Werror
scripts/docs.sh >/dev/null
# The commands of a build are read, and the headers that the build makes.
scripts/build.sh lint proto/trainyard/live.pb.h
scripts/sources.sh | grep -E '^(src|bench)/.*\.cc$' | grep -v '_test\.cc$' |
  xargs scripts/tidy.py build/lint
echo "format and lint: clean"
