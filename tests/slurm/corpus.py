# SPDX-License-Identifier: Apache-2.0
"""Batch scripts of the shapes that people write: idioms of training scripts, and a grammar of options.

The heads are those of scripts in public repositories and of pages of universities, one idiom each; the bodies
are what such scripts do. Nothing here was copied from one.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Script:
    name: str
    text: str
    options: tuple[str, ...] = ()  # of the command, before the script
    arguments: tuple[str, ...] = ()
    runs: bool = True  # whether its output is compared, too


# Directives, a line each.
HEADS = {
    "plain": [],
    "name": ["--job-name=train"],
    "name-short": ["-J bert"],
    "gres": ["--gres=gpu:1"],
    "gres-typed": ["--gres=gpu:v100:2"],
    "gpus": ["--gpus=2"],
    "gpus-short": ["-G1"],
    "gpus-typed": ["--gpus a100:2"],
    "gpus-per-node": ["--nodes=2", "--gpus-per-node=2"],
    "gpus-per-task": ["--ntasks=2", "--gpus-per-task=1"],
    "gres-none": ["--gres=gpu:0"],
    "nodes-tasks": ["-N 2", "--ntasks-per-node=2"],
    "nodes-range": ["--nodes=1-2"],
    "ntasks": ["-n 4"],
    "ntasks-cpus": ["--ntasks=2", "--cpus-per-task=3"],
    "cpus": ["-c2"],
    "cpus-per-gpu": ["--gres=gpu:2", "--cpus-per-gpu=2"],
    "mem": ["--mem=4G"],
    "mem-mb": ["--mem=2048"],
    "mem-lower": ["--mem=4g"],
    "mem-gb": ["--mem=4GB"],
    "mem-per-cpu": ["--mem-per-cpu=1G", "--cpus-per-task=2"],
    "mem-per-gpu": ["--mem-per-gpu=8G", "--gpus=2"],
    "time-minutes": ["--time=30"],
    "time-minsec": ["-t 90:30"],
    "time-hours": ["--time=1:00:00"],
    "time-days": ["--time=2-12"],
    "time-full": ["-t 2-12:30:00"],
    "time-none": ["--time=UNLIMITED"],
    "time-zero": ["--time=0"],
    "partition": ["--partition=gpu"],
    "partition-short": ["-p short"],
    "partitions": ["-p short,gpu"],
    "account": ["--account=lab", "--qos=high"],
    "comment": ["--comment=first try", "--wckey=w"],
    "mail": ["--mail-type=END,FAIL", "--mail-user=ann@example.org"],
    "mail-all": ["--mail-type=ALL"],
    "output": ["--output=out-%j.txt"],
    "output-x": ["-o %x-%u.log"],
    "output-err": ["-o o.%j", "-e e.%j"],
    "output-open": ["--output=log.txt", "--open-mode=append"],
    "output-node": ["--output=%N-%j.txt"],
    "array": ["--array=0-2", "-o a_%A_%a.txt"],
    "array-limit": ["--array=1-5:2%1"],
    "array-list": ["-a 1,3,5"],
    "exclude": ["--exclude=v0"],
    "nodelist": ["-w n1"],
    "constraint": ["--constraint=a100", "--gres=gpu:1"],
    "constraint-or": ["-C a100|v100"],
    "exclusive": ["--exclusive"],
    "requeue": ["--requeue"],
    "no-requeue": ["--no-requeue"],
    "signal": ["--signal=B:USR1@60", "--time=10"],
    "nice": ["--nice=100"],
    "chdir": ["--chdir=sub"],
    "export-none": ["--export=NONE"],
    "export-list": ["--export=ALL,EXTRA=7"],
    "hint": ["--hint=nomultithread"],
    "distribution": ["--distribution=block:block", "-N2", "--ntasks-per-node=1"],
    "no-kill": ["--no-kill"],
    "several-in-line": ["-N1 -n1 -c2 --mem=1G", "--time=5 --job-name=one-line"],
    "remark": ["--time=5   # five minutes"],
    "quotes": ["--job-name=\"two words\""],
    "begin": ["--begin=now"],
    "dependency": ["--dependency=singleton"],
    "tmp": ["--tmp=1G"],
    "ddp": ["--job-name=ddp", "--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=4", "--cpus-per-task=4",
            "--mem=16G", "--time=00:20:00", "--output=%x.%j.out"],
    "notebook": ["-p gpu", "--gres=gpu:1", "-c 4", "--mem=8000M", "-t 0-01:00", "-o nb-%J.log"],
    "input": ["--input=/dev/null"],
    "abbreviated": ["--part=gpu", "--cpus=2", "--tim=5"],
    "wait-all": ["--wait-all-nodes=1"],
    "profile": ["--profile=none", "--propagate=NONE"],
    "verbose": ["--verbose"],
    "threads": ["--threads-per-core=1"],
    "spread": ["--spread-job"],
    "switches": ["--switches=1"],
    # Which Slurm refuses.
    "bad-option": ["--gpu=2"],
    "bad-time": ["--time=1h"],
    "bad-gres": ["--gres=gpu:99"],
    "bad-type": ["--gres=gpu:h200:1"],
    "bad-partition": ["-p nosuch"],
    "bad-nodes": ["--nodes=9"],
    "bad-memory": ["--mem=lots"],
    "bad-array": ["--array=x"],
    "bad-feature": ["--constraint=nosuch"],
    "bad-node": ["--nodelist=zz"],
    "bad-licence": ["--licenses=matlab:1"],
}
ENVIRONMENT = """for v in JOB_ID JOB_NAME JOB_PARTITION NNODES JOB_NUM_NODES JOB_NODELIST NTASKS NPROCS NTASKS_PER_NODE \\
  TASKS_PER_NODE CPUS_PER_TASK CPUS_ON_NODE JOB_CPUS_PER_NODE MEM_PER_NODE MEM_PER_CPU MEM_PER_GPU CPUS_PER_GPU \\
  GPUS GPUS_PER_NODE GPUS_PER_TASK GPUS_ON_NODE JOB_GPUS ARRAY_JOB_ID ARRAY_TASK_ID ARRAY_TASK_COUNT ARRAY_TASK_MIN ARRAY_TASK_MAX \\
  ARRAY_TASK_STEP PROCID LOCALID NODEID GTIDS RESTART_COUNT JOB_ACCOUNT JOB_QOS; do
  eval "x=\\${SLURM_$v-unset}"; echo "$v=$x"; done
"""
BODIES = {
    "environment": ENVIRONMENT,
    "folder": 'cd "$SLURM_SUBMIT_DIR" && basename "$PWD"; echo "${CUDA_VISIBLE_DEVICES-none}"\n',
    "strict": "set -euo pipefail\ntrap 'echo bye' EXIT\necho \"job ${SLURM_JOB_NAME}\"; test -n \"$SLURM_JOB_ID\"\n",
    "fails": "echo before; exit 3\n",
    "steps": "srun -N1 -n1 echo step one\nsrun -N1 -n1 sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS'\necho rc $?\n",
    "step-fails": "srun -n1 -N1 sh -c 'exit 5'\necho rc $?\n",
    "hosts": "scontrol show hostnames \"$SLURM_JOB_NODELIST\" | wc -l\n",
    "arguments": 'echo "$# arguments: $*"\n',
    "not-found": "module load cuda 2>/dev/null || echo no modules\npython3 - <<'END'\nprint('python', 6 * 7)\nEND\n",
    "array-use": 'FILES=(a b c d e f)\necho "${FILES[${SLURM_ARRAY_TASK_ID:-0}]}"\n',
}


def text_of(lines: list[str], body: str, shell: str = "/bin/bash") -> str:
    return f"#!{shell}\n" + "".join(f"#SBATCH {line}\n" for line in lines) + "\n" + body


def idioms() -> Iterator[Script]:
    """Each head with the environment, and each body with heads of its kind."""
    for name, lines in HEADS.items():
        yield Script(f"{name}+environment", text_of(lines, ENVIRONMENT))
    heads = ["plain", "gres", "nodes-tasks", "ddp", "array", "ntasks", "output-err", "several-in-line", "cpus", "gpus"]
    for head, (name, body) in itertools.product(heads, BODIES.items()):
        if name != "environment":
            yield Script(f"{head}+{name}", text_of(HEADS[head], body), arguments=("x", "y z"))
    for name, options in {"over-time": ("--time=7",), "over-name": ("-J", "mine"), "over-nodes": ("-N1", "-n2"),
                          "over-gres": ("--gres=gpu:v100:1",), "over-output": ("-o", "mine-%j.out"),
                          "over-array": ("--array=0-1",), "over-mem": ("--mem=1G",)}.items():
        yield Script(name, text_of(HEADS["several-in-line"], ENVIRONMENT), options=options)
    yield Script("sh", text_of(["-t 5"], "echo sh\n", "/bin/sh"))
    yield Script("python", text_of(["-t 5"], "print('snake')\n", "/usr/bin/env python3"))
    yield Script("comments", "#!/bin/bash\n##SBATCH --nodes=9\n# #SBATCH -N 9\n#SBATCH -t 5\n\n# more\n#SBATCH -c2\n"
                 "echo on\n#SBATCH --nodes=9\n" + ENVIRONMENT)
    yield Script("dos", "#!/bin/bash\r\n#SBATCH -t 5\r\necho\r\n")
    yield Script("no-shebang", "echo nothing\n")


def grammar(seed: int, count: int) -> Iterator[Script]:
    """Random requests, most of which Slurm takes; only how they are read is compared."""
    rng = random.Random(seed)
    pick = rng.choice
    parts = [
        lambda: f"--nodes={pick(['1', '2', '1-2', '3'])}",
        lambda: f"--ntasks={pick([1, 2, 3, 4, 8])}",
        lambda: f"--ntasks-per-node={pick([1, 2, 4])}",
        lambda: f"--cpus-per-task={pick([1, 2, 3, 4])}",
        lambda: f"--gres=gpu:{pick(['1', '2', '4', 'a100:1', 'a100:2', 'v100:1', 'a40:2'])}",
        lambda: f"--gpus={pick(['1', '2', '4', 'a100:2', 'v100:4'])}",
        lambda: f"--gpus-per-node={pick(['1', '2', 'a100:4'])}",
        lambda: f"--gpus-per-task={pick([1, 2])}",
        lambda: f"--mem={pick(['512M', '1G', '4G', '16384', '8g', '2GB'])}",
        lambda: f"--mem-per-cpu={pick(['512M', '1G', '2000'])}",
        lambda: f"--mem-per-gpu={pick(['4G', '8G'])}",
        lambda: f"--cpus-per-gpu={pick([1, 2, 4])}",
        lambda: f"--time={pick(['5', '90:30', '1:00:00', '1-0', '2-12:30', '0', '0:30', 'INFINITE'])}",
        lambda: f"--partition={pick(['gpu', 'short'])}",
        lambda: f"--job-name={pick(['a', 'b-2', 'long-name-of-a-job'])}",
        lambda: f"--account={pick(['lab', 'mlt'])}",
        lambda: f"--comment={pick(['c', 'd'])}",
        lambda: f"--array={pick(['0-3', '1,5,9', '0-10:5', '2-4%2'])}",
        lambda: f"--exclude={pick(['v0', 'w0', 'n[0-1]'])}",
        lambda: f"--nodelist={pick(['n0', 'n[0-1]', 'v0'])}",
        lambda: f"--constraint={pick(['a100', 'v100', 'a100|v100'])}",
        lambda: "--exclusive",
        lambda: f"--nice={pick([10, 100])}",
        lambda: f"--begin={pick(['now', 'now+60', 'now+1hour'])}",
    ]
    for number in range(count):
        lines = [part() for part in rng.sample(parts, rng.randint(1, 5))]
        yield Script(f"grammar-{seed}-{number}", text_of(lines, "true\n"), runs=False)
