#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package_test.sh PROGRAM SOURCE: makes the package of `./dev prove gpu --pack`, unpacks it, and runs the live
# test from there, with nothing of this source tree or its build, and a pretended GPU.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
TRAINYARD_PORTABLE=$1 "$2/scripts/gpu_test.sh" --pack "$scratch/package.tar.gz"
tar -C "$scratch" -xzf "$scratch/package.tar.gz"
cd "$scratch/trainyard-gpu-test"
ldd bin/trainyard >"$scratch/libraries"
if grep -E '=> not found|=> /' "$scratch/libraries" | grep -v "=> $PWD/bin/../lib/" |
  grep -v -E '/(libc|libm|libdl|librt|libpthread|libresolv)\.so'; then
  echo "package: these libraries are not in the package" >&2
  exit 1
fi
if grep -rlI "$(realpath "$2")" .; then
  echo "package: these files name the source tree" >&2
  exit 1
fi
env -i PATH=/usr/bin:/bin HOME="$scratch" LANG=C.UTF-8 OMP_NUM_THREADS=1 ./gpu-test --live --pretend \
  --limit 800 --out "$scratch/figures"
grep -q '"name": "live"' "$scratch/figures/live.json"
