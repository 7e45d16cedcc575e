#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Formatting, one definition of each type, and clang-tidy over the library and the program; a
# warning is an error.
set -eu
cd "$(dirname "$0")/.."
scripts/sources.sh | xargs clang-format-14 --dry-run --Werror
scripts/sources.sh | xargs scripts/one-definition.py
scripts/build.sh clang
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! scripts/sources.sh | grep -E '^(src|bench)/.*\.cc$' | grep -v '_test\.cc$' |
  xargs -P 2 -n 4 clang-tidy-14 -p build/clang --quiet >"$log" 2>&1; then
  grep -E -A 4 'error:' "$log"
  exit 1
fi
echo "format and lint: clean"
