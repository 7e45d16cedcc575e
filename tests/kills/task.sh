#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A task of a step of script.sh: task.sh WITNESS ATTEMPT STEP. It holds a lock of the kernel for as long as a
# process of it is there, so that the same task once more, or one of an earlier attempt, does not stay unseen.
say() {
  echo "$1 $attempt $step $SLURM_PROCID" >>"$witness"
}
witness=$1 attempt=$2 step=$3
exec 9>>"$witness-$attempt-$step-$SLURM_PROCID.lock"
flock -n 9 || say twice
for other in "$witness"-*.lock; do
  case $other in
  "$witness-$attempt"-*) ;;
  *) flock -sn "$other" true || say twice ;;
  esac
done
say begin
sleep 0.5
say end
