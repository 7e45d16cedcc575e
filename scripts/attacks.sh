#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Attempts of users against one another and against the machine (docs/security.md). As root: users are made,
# and removed again. --verbose: each attempt with what came of it.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh release trainyard trainyard-launcher-of-tests
exec /usr/bin/python3 -B tests/attacks/attacks.py build/release "$@"
