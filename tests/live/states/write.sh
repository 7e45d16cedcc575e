#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# write.sh PROGRAM FOLDER [KIND]: FOLDER/controller.db as PROGRAM leaves it when everything is killed (README.md).
# KIND: states (the default: jobs in all states), terms (an array, a hold, dependencies, a time limit), calls
# (calls on many jobs, a drained node, notices on their way), preempted (a job has taken the GPUs of
# another, under las), blocked (under fifo a job waits behind one that needs a drained node), or
# configured (partitions and profiles, and a change of both, of the policy and of the nodes).
set -eu
program=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
kind=${3:-states}
policy=fifo
[ "$kind" != preempted ] || policy=las:quantum=0
notify=
[ "$kind" != calls ] || notify='--notify-program /bin/false'
scratch=$(mktemp -d)
cluster=
finish() {
  [ -z "$cluster" ] || kill -CONT "$cluster" 2>/dev/null || true
  # The second one kills the jobs.
  for _ in 1 2; do
    [ -z "$cluster" ] || kill -INT "$cluster" 2>/dev/null || true
    sleep 1
  done
  [ -z "$cluster" ] || wait "$cluster" || true
  rm -rf "$scratch"
}
trap finish EXIT
cat >"$scratch/cluster.toml" <<'END'
[[nodes]]
count = 2
gpus = 2
[[partitions]]
name = "debug"
nodes = ["n0"]
default = true
max_time = "2h"
[[partitions]]
name = "long"
nodes = ["n1"]
END
printf 'model,batch_size,gpus,iterations_per_second\nvgg,8,1,1\n' >"$scratch/profiles.csv"
nodes='--nodes 2 --gpus 2'
[ "$kind" != configured ] || nodes='--cluster cluster.toml --profiles profiles.csv'
cd "$scratch"  # a configuration says where its files were
export TRAINYARD_CONTROLLER=127.0.0.1:7480
# shellcheck disable=SC2086
"$program" up $nodes --policy "$policy" --state "$scratch" --snapshot-entries 8 \
  --listen $TRAINYARD_CONTROLLER $notify >"$scratch/log" 2>&1 &
cluster=$!
cd /  # jobs remember where they were submitted
submit() {
  "$program" submit --user ann "$@" >/dev/null
}
await() {  # JOB STATE
  until "$program" status --json "$1" | grep -q "\"state\": \"$2\""; do sleep 0.1; done
}
jobs_in_all_states() {
  submit --gpus 1 --name done -- true
  await 1 completed
  submit --gpus 1 --name fails -- sh -c 'exit 3'
  await 2 failed
  # Runs until there is a file `go` beside the checkpoints.
  submit --gpus 2 --name runs -- sh -c 'until [ -e "$TRAINYARD_CHECKPOINT_DIR/../go" ]; do sleep 0.1; done'
  await 3 running
  submit --gpus 4 --name waits --duration 1m -- true
  submit --gpus 4 --name unwanted -- true
  "$program" cancel 5 >/dev/null
  await 5 cancelled
  "$program" resize 4 --gpus 3 >/dev/null
}
jobs_with_terms() {
  submit --gpus 1 --name done -- true
  await 1 completed
  # Two tasks at a time; the first two run until there is a file `go` beside the checkpoints.
  submit --gpus 1 --name sweep --array 0-3%2 -- \
    sh -c 'until [ -e "$TRAINYARD_CHECKPOINT_DIR/../go" ]; do sleep 0.1; done'
  await 2 running
  await 3 running
  submit --gpus 4 --name held -- true
  "$program" hold 6 >/dev/null
  submit --gpus 1 --name after --dependency afterok:2 -- true
  submit --gpus 1 --name never --dependency afternotok:1 -- true
  submit --gpus 1 --name limited --time 1s -- sleep 600
  submit --gpus 1 --name later --begin 1000000h -- true
  submit --gpus 1 --name sweep --dependency singleton -- true
  "$program" update 10 --priority 3 >/dev/null
  await 9 failed
}
calls_on_many_jobs() {
  submit --gpus 1 --name done -- true
  await 1 completed
  submit --gpus 2 --name runs -- sh -c 'until [ -e "$TRAINYARD_CHECKPOINT_DIR/../go" ]; do sleep 0.1; done'
  await 2 running
  "$program" drain --reason 'a new fan' n1 >/dev/null
  submit --gpus 1 --name sweep --array 0-9 --notify end -- true
  "$program" hold 3 >/dev/null
  "$program" update 3 --priority 5 >/dev/null
  "$program" cancel '3_[2-4]' >/dev/null
  "$program" release '3_[0-1]' >/dev/null
  await 7 cancelled
}
preempted_at_once() {
  submit --gpus 4 -- sleep 100
  await 1 running
  submit --gpus 4 -- sleep 100
  await 2 running
}
behind_a_drained_node() {
  submit --gpus 1 --name runs -- sh -c 'until [ -e "$TRAINYARD_CHECKPOINT_DIR/../go" ]; do sleep 0.1; done'
  await 1 running
  "$program" drain --reason 'a new fan' n1 >/dev/null
  submit --gpus 4 --name head -- true
  submit --gpus 1 --name behind -- true
  sleep 1
  await 3 waiting
}
until_told() {
  submit "$@" -- sh -c 'until [ -e "$TRAINYARD_CHECKPOINT_DIR/../go" ]; do sleep 0.1; done'
}
changed_while_it_runs() {
  until_told --gpus 2 --queue long --name runs
  await 1 running
  submit --gpus 2 --queue long --name waits -- true
  until_told --gpus 1 --name short
  await 3 running
  printf 'model,batch_size,gpus,iterations_per_second\nvgg,8,1,4\n' >"$scratch/profiles.csv"
  "$program" config show >"$scratch/next.toml"
  sed -i "/^profiles_digest/d; s/^policy = .*/policy = 'srtf'/; s/'n1'\]/'n0']/" "$scratch/next.toml"
  "$program" config apply "$scratch/next.toml" >/dev/null
  "$program" node add n2 --gpus 2 --partition long --labels nvlink >/dev/null
}
case "$kind" in
  states) jobs_in_all_states ;;
  terms) jobs_with_terms ;;
  calls) calls_on_many_jobs ;;
  preempted) preempted_at_once ;;
  blocked) behind_a_drained_node ;;
  configured) changed_while_it_runs ;;
esac
# As it would be after kill -9; as one file.
kill -STOP "$cluster"
cp "$scratch"/controller/controller.db* "$scratch"
python3 - "$scratch/controller.db" "$folder/controller.db" <<'END'
import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("VACUUM INTO ?", sys.argv[2:])
END
