#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fidelity.sh PROGRAM SOURCE_FOLDER WITHIN JOBS TIME_SCALE POLICY...: the same jobs simulated and,
# with emulated trainers and scaled time, on a cluster of this machine; mean JCT must agree within so
# many per cent, `any`: every job must end alike, whenever.
# The policies run side by side: a cluster of emulated trainers is mostly asleep. Scaled time makes
# milliseconds of this machine seconds of the run, so that a neighbour's load can spoil one: a policy
# that misses the bound runs up to twice more alone, with the time half as fast.
set -eu
program=$1
source=$2
within=$3
jobs=$4
scale=$5
shift 5
bound="--within $within"
[ "$within" != any ] || bound=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head -n $((jobs + 1)) "$source/data/example_trace.csv" >"$work/trace.csv"
profiles=$source/data/example_profiles.csv

port_of() { # LOG: as soon as the cluster is up
  for _ in $(seq 200); do
    port=$(sed -n 's/.* at 127.0.0.1:\([0-9]*\);.*/\1/p' "$1")
    [ -z "$port" ] || break
    sleep 0.1
  done
  echo "${port:?the cluster has not come up}"
}

compare() { # POLICY
  out=$work/$1
  rm -rf "$out"
  mkdir "$out"
  options="--policy $1"
  case $1 in
    gandiva*) options="$options --placement gandiva" ;;
    elasticflow*) options="$options --admission deadline" ;;
  esac
  # shellcheck disable=SC2086
  "$program" simulate "$work/trace.csv" --cluster 4x8 --profiles "$profiles" $options \
    --out "$out/simulated" >/dev/null
  # shellcheck disable=SC2086
  "$program" up --nodes 4 --gpus 8 --profiles "$profiles" $options --time-scale "$scale" \
    --state "$out/state" --listen 127.0.0.1:0 >"$out/up.log" &
  cluster=$!
  status=0
  "$program" replay-live "$work/trace.csv" --cluster 4x8 --profiles "$profiles" --out "$out/live" \
    --controller "127.0.0.1:$(port_of "$out/up.log")" --time-scale "$scale" >/dev/null || status=$?
  kill -INT "$cluster"
  wait "$cluster" || status=$?
  # shellcheck disable=SC2086
  "$program" fidelity "$out/simulated" "$out/live" $bound >"$out/table" || status=$?
  echo "$1: $(tail -n 1 "$out/table")"
  return "$status"
}

pids=
for policy in "$@"; do
  compare "$policy" &
  pids="$pids $!:$policy"
done
again=
for pid in $pids; do
  wait "${pid%%:*}" || again="$again ${pid#*:}"
done
scale=$((scale / 2))
for _ in 1 2; do
  failed=
  for policy in $again; do
    compare "$policy" || failed="$failed $policy"
  done
  again=$failed
done
[ -z "$again" ]
