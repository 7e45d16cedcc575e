#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh [build|package]: installs the packages of packages.txt that are missing: of the sections up to
# the one that is named, or of all. As root or with sudo, without questions. Waits up to five minutes for
# another program that uses apt. A failure is one line that says what is missing and what to type.
set -eu
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say() { echo "setup: $*"; }
fail() {
  echo "setup: $*" >&2
  exit 1
}

case "${1:-}" in
  build) last='/^# The Debian package/' ;;
  package) last='/^# Tests and checks/' ;;
  *) last='$' ;;
esac
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

system=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release 2>/dev/null || true)
container="or build the Dockerfile: docker build -t trainyard ."
command -v apt-get >/dev/null 2>&1 ||
  fail "${system:-this system} has no apt-get; install what packages.txt lists by other means, $container"
as_root=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 ||
    fail "packages are missing, and neither root nor sudo is here; as root, type: apt-get install$missing"
  as_root=sudo
fi

# apt_get ARGUMENT...: its output goes to the log. Waits while another program holds apt's locks, of which
# apt-get itself waits for one alone.
waited=0
apt_get() {
  while ! $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >"$log" 2>&1; do
    grep -qE 'Could not get lock|Unable to acquire the dpkg frontend lock|Unable to lock directory' "$log" || return 1
    holder=$(sed -n 's/.*held by process \([0-9]*\) (\([^)]*\)).*/\2, process \1/p' "$log" | head -n 1)
    [ "$waited" -lt 300 ] ||
      fail "another program (${holder:-unknown}) has kept apt's lock for five minutes; when it has ended, type the command again"
    [ "$waited" != 0 ] || say "waiting up to five minutes for another program that uses apt (${holder:-unknown})"
    sleep 5
    waited=$((waited + 5))
  done
}

say "installing$missing"
# A server that cannot be reached matters only if something is missing because of that.
apt_get update || true
unreached=$(sed -n 's/^[EW]: Failed to fetch \([^ ]*\).*/\1/p' "$log" | head -n 1)
# shellcheck disable=SC2086
apt_get install -y --no-install-recommends $missing && exit 0

unknown=$(sed -n -e 's/^E: Unable to locate package \(.*\)$/\1/p' \
  -e "s/^E: Package '\(.*\)' has no installation candidate$/\1/p" "$log" | tr '\n' ' ')
address=$(sed -n 's/^\(E: Failed to fetch\|Err:[0-9]*\) \([^ ]*\).*/\2/p' "$log" | head -n 1)
if [ -n "$unknown" ] && [ -n "$unreached" ]; then
  fail "$unreached cannot be reached, and these packages are missing: ${unknown% }; check the network, then type the command again"
fi
if [ -n "$unknown" ]; then
  fail "${system:-this system} has no package ${unknown% }; Trainyard builds on Debian 12 with its section main: use such a machine, $container"
fi
if [ -n "$address" ]; then
  fail "the download of packages failed at $address; check the network, then type the command again (what has come is kept)"
fi
if grep -q 'dpkg --configure -a' "$log"; then
  fail "an installation was interrupted earlier; as root, type: dpkg --configure -a"
fi
reason=$(sed -n 's/^E: //p' "$log" | head -n 1)
fail "apt-get could not install$missing: ${reason:-$(tail -n 1 "$log")}"
