#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package.sh [--test]: builds the program and makes the Debian package, out/trainyard_VERSION_ARCH.deb, and
# the client library alone as a wheel. --test: installs, uses and removes both on this machine
# (scripts/package-test.sh).
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
  '' | --test) ;;
  *)
    echo "usage: ./dev package [--test]" >&2
    exit 2 ;;
esac
scripts/build.sh release trainyard trainyard-launcher
rm -rf out/package && mkdir -p out/package
# The same commit gives the same package: its files have the commit's date.
date=$(git log -1 --format=%ct 2>/dev/null) && export SOURCE_DATE_EPOCH="$date"
cpack --config build/release/CPackConfig.cmake -B out/package >out/package.log 2>&1 || {
  cat out/package.log >&2
  exit 1
}
package=$(basename out/package/trainyard_*.deb)
mv "out/package/$package" "out/$package"
rm -r out/package out/package.log
echo "out/$package: $(dpkg-deb --field "out/$package" Depends | sed 's/^/depends on /')"
# Built in a copy: setuptools writes beside the sources.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r python/pyproject.toml python/README.md python/trainyard "$copy"
rm -f out/trainyard-*.whl
/usr/bin/python3 -m pip --disable-pip-version-check wheel --quiet --no-build-isolation --no-deps --no-index \
  --wheel-dir out "$copy"
wheel=$(basename out/trainyard-*.whl)
echo "out/$wheel: needs Python, and PyTorch where tensors are used"
[ -z "${1:-}" ] || scripts/package-test.sh "out/$package" "out/$wheel"
