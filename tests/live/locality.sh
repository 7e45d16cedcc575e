#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# locality.sh PROGRAM WITHIN: 20 jobs with 4 data sets, with the option `locality` of the placement and
# without, simulated and on a cluster of this machine whose agents fetch real files by rsync. Outcomes must be
# the same and mean JCT within so many per cent, shorter with the option than without; `any`: outcomes alone.
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
# Submission, GPUs, duration, set. By simulation the option saves 6 % of mean JCT.
number=0
echo job_id,submit_time,gpus,duration,data_set,data_mib,data_home >"$work/trace.csv"
for job in 0,1,3,1 5,2,4,3 6,1,6,0 11,1,4,2 16,1,9,2 17,1,4,0 18,1,4,2 19,1,8,2 24,1,9,2 29,2,7,2 30,1,6,1 \
  32,1,3,0 34,1,6,2 36,2,6,2 37,1,5,1 38,1,6,0 43,2,8,2 45,1,3,1 47,2,5,1 48,2,8,2; do
  number=$((number + 1))
  echo "j$number,${job%,*},d${job##*,},6,$work/store/d${job##*,}" >>"$work/trace.csv"
done
cat >"$work/cluster.toml" <<END
[[nodes]]
count = 2
gpus = 3
cache_gb = 0.0126953125
remote_mb_per_s = 2.098
END

compare() { # LOCALITY
  out=$work/$1
  mkdir "$out"
  options="--policy fifo --placement consolidated:locality=$1"
  # shellcheck disable=SC2086
  "$program" simulate "$work/trace.csv" --cluster "$work/cluster.toml" $options \
    --out "$out/simulated" >/dev/null
  # shellcheck disable=SC2086
  "$program" up --nodes 2 --gpus 3 $options --data-cache 13MB --data-rate 2MB --state "$out/state" \
    --listen 127.0.0.1:0 >"$out/up.log" &
  cluster=$!
  for _ in $(seq 200); do
    port=$(sed -n 's/.* at 127.0.0.1:\([0-9]*\);.*/\1/p' "$out/up.log")
    [ -z "$port" ] || break
    sleep 0.1
  done
  status=0
  "$program" replay-live "$work/trace.csv" --cluster 2x3 --out "$out/live" \
    --controller "127.0.0.1:${port:?the cluster has not come up}" --time-scale 1 >/dev/null ||
    status=$?
  kill -INT "$cluster"
  wait "$cluster" || status=$?
  # shellcheck disable=SC2086
  "$program" fidelity "$out/simulated" "$out/live" $bound >"$out/table" || status=$?
  echo "locality=$1: $(tail -n 1 "$out/table")"
  return "$status"
}

mean_of() { # RUN
  sed -n 's/.*"jct_mean": *\([0-9.]*\).*/\1/p' "$1/summary.json" | head -n 1
}

compare 0 &
plain=$!
compare 1
wait "$plain"
# By how much depends on how busy the machine is.
[ "$2" = any ] || awk -v plain="$(mean_of "$work/0/live")" -v near="$(mean_of "$work/1/live")" \
  'BEGIN { printf "live, locality=1 saves %.1f %%\n", 100 * (1 - near / plain); exit !(near < plain) }'
