#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=1 --open-mode=append -o steps/%j.out
# A script of three steps over two nodes that is its own witness, in the file steps/JOB of the folder that it runs
# in: what each srun has said, and what task.sh says.
set +e
own=steps/$SLURM_JOB_ID
result=0
echo "script $TRAINYARD_ATTEMPT begin" >>"$own"
for step in 0 1 2; do
  srun sh "$TASK" "$own" "$TRAINYARD_ATTEMPT" $step
  status=$?
  echo "srun $TRAINYARD_ATTEMPT $step $status" >>"$own"
  [ $status = 0 ] || result=1
done
echo "script $TRAINYARD_ATTEMPT end" >>"$own"
exit $result
