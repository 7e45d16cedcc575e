# SPDX-License-Identifier: Apache-2.0
"""steps_test.py PROGRAM: scripts of Slurm train with PyTorch on two nodes, by srun.

A cluster of two agents on this machine, whose nodes are called as addresses of it, so that the names
that `scontrol show hostnames` prints are those of hosts, as they are on a real cluster. One script
starts the trainer by `srun python3`, one by `srun torchrun`. The ranks of both nodes must reduce to
the same weights, which are those of a training on one process with all samples.
"""

import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from expectations import TestFailure, expect, wait_until

PATIENCE = 300.0  # seconds for any one thing to happen
NODES = ["127.0.0.10", "127.0.0.20"]
STEPS = 5

# Each rank has samples of its own; the gradients are the mean over all ranks.
TRAINER = f"""
import os, sys
import torch
import torch.distributed as dist

rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0)))
size = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", 1)))
alone = len(sys.argv) > 1 and sys.argv[1] == "alone"
if not alone:
    dist.init_process_group("gloo", rank=rank, world_size=size)
torch.manual_seed(7)
model = torch.nn.Linear(4, 1)
samples = torch.arange(32, dtype=torch.float32).reshape(8, 4) / 32
mine = samples if alone else samples[rank::size]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range({STEPS}):
    optimizer.zero_grad()
    loss = ((model(mine) - mine.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    for parameter in model.parameters():
        if not alone:
            dist.all_reduce(parameter.grad)
            parameter.grad /= size
    optimizer.step()
weights = " ".join(f"{{value:.5f}}" for value in model.weight.flatten().tolist())
node = os.environ.get("SLURMD_NODENAME", "alone")
print(f"rank {{rank}} of {{size}} on {{node}}: {{weights}}", flush=True)
if not alone:
    dist.destroy_process_group()
"""

BY_PYTHON = """#!/bin/bash
#SBATCH --job-name=by-python
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=1
#SBATCH --output=by-python.txt
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=@PORT@ GLOO_SOCKET_IFNAME=lo
srun --kill-on-bad-exit=1 --mpi=none --cpu-bind=none @PYTHON@ train.py
"""

# torch 1.13 fails with Python 3.11 unless the output of some worker goes elsewhere.
BY_TORCHRUN = """#!/bin/bash
#SBATCH --job-name=by-torchrun
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --output=by-torchrun.txt
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${nodes[0]}
export PET_REDIRECTS=9:1 PET_TEE=9:1 GLOO_SOCKET_IFNAME=lo
srun @PYTHON@ -m torch.distributed.run --nnodes $SLURM_NNODES --nproc_per_node 2 \\
  --rdzv_id $SLURM_JOB_ID --rdzv_backend c10d --rdzv_endpoint $head_node:@PORT@ train.py
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """A user's commands, given in one folder."""

    def __init__(self, program: Path, address: str, folder: Path) -> None:
        self._program = program
        self._address = address
        self._folder = folder

    def call(self, command: str, *arguments: str) -> str:
        run = subprocess.run([self._program, command, "--controller", self._address, *arguments],
                             cwd=self._folder, text=True, capture_output=True, timeout=PATIENCE)
        expect(run.returncode == 0, f"trainyard {command} {arguments}: {run.stderr}")
        return run.stdout

    def all_up(self) -> bool:
        run = subprocess.run([self._program, "nodes", "--controller", self._address, "--json"],
                             text=True, capture_output=True, timeout=PATIENCE)
        return run.returncode == 0 and all(node.get("up") for node in json.loads(run.stdout)["nodes"])

    def run_script(self, number: int, name: str, text: str) -> str:
        (self._folder / f"{name}.sh").write_text(
            text.replace("@PORT@", str(free_port())).replace("@PYTHON@", sys.executable))
        self.call("submit", f"{name}.sh")

        def ended() -> bool:
            state = json.loads(self.call("status", "--json", str(number)))["jobs"][0]["state"]
            return state in ("completed", "failed", "cancelled", "rejected")

        wait_until(f"{name} ends", ended, PATIENCE)
        output = (self._folder / f"{name}.txt").read_text()
        state = json.loads(self.call("status", "--json", str(number)))["jobs"][0]["state"]
        expect(state == "completed", f"{name} is {state}:\n{output}")
        return output


@contextlib.contextmanager
def running_cluster(program: Path, folder: Path) -> Iterator[Cluster]:
    cluster = folder / "cluster.toml"
    cluster.write_text("".join(f'[[nodes]]\nname = "{node[:-1]}"\ngpus = 2\n' for node in NODES))  # with 0 behind
    address = f"127.0.0.1:{free_port()}"
    commands = [["controller", "--cluster", cluster, "--state", folder / "controller", "--listen", address,
                 "--lease", "20", "--grace", "5"]]
    commands += [["agent", "--controller", address, "--node", node, "--gpus", "2", "--state", folder / node]
                 for node in NODES]
    with (folder / "cluster.log").open("w") as log:
        processes = [subprocess.Popen([program, *command], stdout=log, stderr=subprocess.STDOUT)
                     for command in commands]
    try:
        user = Cluster(program, address, folder)
        wait_until("both nodes are up", user.all_up, PATIENCE)
        yield user
    except BaseException:
        print((folder / "cluster.log").read_text())
        raise
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(PATIENCE)


def weights_alone(folder: Path) -> str:
    run = subprocess.run([sys.executable, "train.py", "alone"], cwd=folder, text=True,
                         capture_output=True, timeout=PATIENCE)
    expect(run.returncode == 0, f"the trainer fails without a cluster:\n{run.stderr}")
    return run.stdout.split(": ")[1].strip()


def check(output: str, per_node: int, weights: str) -> None:
    """So many ranks on each node, each with these weights. torchrun numbers nodes as they come."""
    # Python writes a line and its end apart, and processes of torchrun share a pipe.
    lines = re.findall(r"rank (\d+) of (\d+) on (\S+): ([-\d. ]+)", output)
    size = per_node * len(NODES)
    expect(sorted(int(rank) for rank, _, _, _ in lines) == list(range(size)) and
           {(total, there.strip()) for _, total, _, there in lines} == {(str(size), weights)} and
           sorted(node for _, _, node, _ in lines) == sorted(NODES * per_node),
           f"expected {size} ranks with the weights {weights}, got:\n{output}")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="trainyard-steps-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(TRAINER)
        weights = weights_alone(folder)
        with running_cluster(Path(sys.argv[1]).resolve(), folder) as user:
            check(user.run_script(1, "by-python", BY_PYTHON), 1, weights)
            print("srun python3 has trained on two nodes", flush=True)
            check(user.run_script(2, "by-torchrun", BY_TORCHRUN), 2, weights)
            print("srun torchrun has trained on two nodes", flush=True)


if __name__ == "__main__":
    try:
        main()
    except TestFailure as failure:
        sys.exit(f"FAILED: {failure}")
