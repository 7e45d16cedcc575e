#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists the C++ sources of the project.
set -eu
cd "$(dirname "$0")/.."
git ls-files --cached --others --exclude-standard '*.cc' '*.h'
