#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that must hold before a change lands; CI runs the same.
set -eu
cd "$(dirname "$0")"
./test.sh
./sanitize.sh
./lint.sh
