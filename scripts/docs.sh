#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pages of the public headers, out/api/index.html; a warning is an error.
set -eu
cd "$(dirname "$0")/.."
rm -rf out/api
mkdir -p out
doxygen
echo "out/api/index.html"
