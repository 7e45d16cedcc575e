#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long the two commands of README.md take from a clone of HEAD on a bare Debian 12: each in a system of its
# own (debootstrap's minbase, git and certificates), as root. Writes the minutes into README.md, and the
# output of both into out/measure-start/.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
  echo "measure-start: needs root, for debootstrap, chroot and mount" >&2
  exit 1
fi
command -v debootstrap >/dev/null || {
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null
}
work=$(mktemp -d)
clean() {
  for place in run sys dev proc; do umount -lq "$work/system/$place" 2>/dev/null || true; done
  rm -rf --one-file-system "$work"
}
trap clean EXIT
mkdir -p out/measure-start
server=$(sed -n 's/^\(URIs:\|deb\) *\(http[^ ]*\).*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list \
  2>/dev/null | head -n 1 || true)
if [ -z "$server" ]; then
  echo "measure-start: apt's sources name no Debian server (/etc/apt/sources.list, sources.list.d/debian.sources)" >&2
  exit 1
fi
echo "measure-start: making a bare Debian 12"
debootstrap --variant=minbase --include=ca-certificates,git bookworm "$work/bare" "$server" \
  >out/measure-start/debootstrap.log 2>&1 || {
  tail -n 5 out/measure-start/debootstrap.log >&2
  exit 1
}
# The way to the package servers is this machine's.
cp /etc/resolv.conf /etc/hosts "$work/bare/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$work/bare/etc/ssl/certs/"
cp /etc/apt/apt.conf.d/99* "$work/bare/etc/apt/apt.conf.d/" 2>/dev/null || true

for verb in demo test; do
  cp -a "$work/bare" "$work/system"
  git clone -q --no-local . "$work/system/srv/trainyard"
  mount -t proc proc "$work/system/proc"
  for place in dev sys; do
    mount --rbind "/$place" "$work/system/$place"
    mount --make-rslave "$work/system/$place"
  done
  mount -t tmpfs tmpfs "$work/system/run"
  log=out/measure-start/$verb.log
  echo "measure-start: ./dev $verb (output: $log)"
  started=$SECONDS
  env -i HOME=/root USER=root LANG=C.UTF-8 TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
    chroot "$work/system" /bin/sh -c "cd /srv/trainyard && exec ./dev $verb" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "measure-start: ./dev $verb failed" >&2
    exit 1
  }
  took=$((SECONDS - started))
  minutes=$(((took + 59) / 60))
  echo "measure-start: ./dev $verb took $((took / 60)) min $((took % 60)) s"
  sed -i -E "s/^(\.\/dev $verb +#.*): [0-9]+ minutes/\1: $minutes minutes/" README.md
  for place in run sys dev proc; do umount -l "$work/system/$place"; done
  rm -rf --one-file-system "$work/system"
done
sed -i -E "s/^(Minutes of a bare Debian 12 with )[0-9]+ cores, [0-9-]+/\1$(nproc) cores, $(date +%F)/" README.md
