#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A worker that is its own witness: worker.sh SECONDS. It writes lines "WHAT JOB ATTEMPT RANK PID
# MORE" into the file `witness` of its node, and holds locks of the kernel for as long as a process
# of it is there, so that another attempt of its job, or another holder of its GPU, does not stay
# unseen whatever controller and agents believe. LOCKS: a folder that all nodes share.
node=${TRAINYARD_ATTEMPT_FOLDER%/attempts/*}
own=$TRAINYARD_JOB-$TRAINYARD_ATTEMPT
say() {
  echo "$1 $TRAINYARD_JOB $TRAINYARD_ATTEMPT $RANK $$ $2" >>"$node/witness"
}
exec 9>>"$LOCKS/$own-$RANK"
flock -n 9 || say twice "$own-$RANK"
for other in "$LOCKS/$TRAINYARD_JOB"-*; do
  case $other in
  "$LOCKS/$own"-*) ;;
  *) flock -sn "$other" true || say twice "${other##*/}" ;;
  esac
done
gpu=$(echo "$CUDA_VISIBLE_DEVICES" | cut -d, -f$((LOCAL_RANK + 1)))
exec 8>>"$node/gpu-$gpu"
flock -n 8 || say held "$gpu"
say begin "$gpu"
sleep "$1"
say end "$gpu"
