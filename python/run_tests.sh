#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel offline, installs it into a virtual environment with the system's packages and runs
# the tests against the installed package. Arguments go to pytest.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d -t trainyard-python.XXXXXX)"
trap 'rm -rf "$work"' EXIT
cp -r "$here/pyproject.toml" "$here/README.md" "$here/trainyard" "$work/"
rm -rf "$work/trainyard/__pycache__" "$work/trainyard/train/__pycache__"
/usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --no-index \
    --wheel-dir "$work/wheels" "$work"
/usr/bin/python3 -m venv --system-site-packages "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-deps --no-index "$work"/wheels/trainyard-*.whl
cd "$here"
PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 \
    "$work/venv/bin/python" -m pytest -q -p no:cacheprovider "$@" tests
