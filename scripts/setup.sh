#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh [build]: installs what packages.txt lists and is not there yet, or the part of it that building
# and running need. As root or with sudo, without questions.
set -eu
cd "$(dirname "$0")/.."
last='$'
[ "${1:-}" != build ] || last='/^# Tests and checks/'
missing=
for package in $(sed -n "1,${last}p" packages.txt | grep -v '^#'); do
  # Node.js from elsewhere brings its own npm and does not get on with Debian's.
  case "$package" in
    nodejs) command -v node >/dev/null 2>&1 && continue ;;
    npm) command -v npm >/dev/null 2>&1 && continue ;;
  esac
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
as_root=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || {
    echo "setup: these packages are missing and neither root nor sudo is here:$missing" >&2
    exit 1
  }
  as_root=sudo
fi
echo "setup: installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
