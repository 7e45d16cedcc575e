#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# locality.sh PROGRAM WITHIN: 20 jobs with 4 data sets, with the option `locality` of the placement and
# without, simulated and on a cluster of this machine whose agents fetch real files by rsync. Outcomes must be
# the same and mean JCT within so many per cent (`any`: whatever it is), and with the option the cluster must
# fetch less often than without.
set -eu
program=$1
bound="--within $2"
[ "$2" != any ] || bound=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for set in 0 1 2 3; do
  mkdir -p "$work/store/d$set"
  head -c 6291456 /dev/zero >"$work/store/d$set/data"
done
# Arrivals leave room for a choice; the sets come in no order.
awk -v store="$work/store" 'BEGIN {
  print "job_id,submit_time,gpus,duration,data_set,data_mib,data_home"
  split("0 1 2 0 3 1 1 0 2 3 0 0 1 2 3 1 0 2 1 3", sets)
  for (i = 1; i <= 20; ++i)
    printf "j%d,%.1f,1,%d,d%s,6,%s/d%s\n", i, (i - 1) * 2.5, 4 + i * 7 % 6, sets[i], store, sets[i]
}' >"$work/trace.csv"
printf '[[nodes]]\ncount = 2\ngpus = 2\ncache_gb = 0.0126953125\nremote_mb_per_s = 2.098\n' >"$work/cluster.toml"

compare() { # LOCALITY
  out=$work/$1
  mkdir "$out"
  options="--policy fifo --placement consolidated:locality=$1"
  # shellcheck disable=SC2086
  "$program" simulate "$work/trace.csv" --cluster "$work/cluster.toml" $options --out "$out/simulated" >/dev/null
  # shellcheck disable=SC2086
  "$program" up --nodes 2 --gpus 2 $options --data-cache 13MB --data-rate 2MB --state "$out/state" \
    --listen 127.0.0.1:0 >"$out/up.log" &
  cluster=$!
  for _ in $(seq 200); do
    port=$(sed -n 's/.* at 127.0.0.1:\([0-9]*\);.*/\1/p' "$out/up.log")
    [ -z "$port" ] || break
    sleep 0.1
  done
  status=0
  "$program" replay-live "$work/trace.csv" --cluster 2x2 --out "$out/live" \
    --controller "127.0.0.1:${port:?the cluster has not come up}" --time-scale 1 >/dev/null || status=$?
  "$program" nodes --controller "127.0.0.1:$port" >"$out/nodes"
  kill -INT "$cluster"
  wait "$cluster" || status=$?
  # shellcheck disable=SC2086
  "$program" fidelity "$out/simulated" "$out/live" $bound >"$out/table" || status=$?
  echo "locality=$1: $(tail -n 1 "$out/table")"
  return "$status"
}

overhead() { # FOLDER: seconds in which jobs had GPUs and waited
  sed -n 's/.*"overhead_time[^:]*": *\([0-9.]*\).*/\1/p' "$1/summary.json" | head -n 1
}

compare 0 &
plain=$!
compare 1
wait "$plain"
[ -z "${KEEP:-}" ] || cp -r "$work" "$KEEP"
