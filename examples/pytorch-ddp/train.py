#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training that may be stopped at any step and go on with any number of processes.

A small network learns a synthetic function: PyTorch DDP on the CPU with gloo, one process for each
GPU that Trainyard grants. The library `trainyard.train` makes it fit to be preempted and resized:

- `DataLoader` cuts batches of a fixed global size off the epoch's seeded permutation and deals each
  out to the processes, however many there are. So every sample of every epoch is seen exactly once,
  and the result does not depend on the number of processes.
- `Checkpoint` holds the model, the optimizer, the loader's position and what else is to survive
  (`Record`). It replaces the last one as a whole or not at all.
- `Checkpoint.steps` lets the processes agree after each step whether one of them has had notice. So
  they all leave after the same step, with a checkpoint of it.

seen.csv beside the checkpoints says which process has seen which sample.
"""

import sys
from pathlib import Path

# The repository's library; one that is installed comes first.
sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))

from trainyard.train import Checkpoint, DataLoader, Job

JOB = Job()  # notice may be given while torch is being imported

import argparse
import contextlib
import os
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

FEATURES = 8


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Data-parallel training that may be resized.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1009, help="of an epoch")
    parser.add_argument("--batch-size", type=int, default=16, help="of all processes together")
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="that load, of each process")
    parser.add_argument("--turns", action="store_true", help="take turns with other jobs")
    parser.add_argument("--step-sleep", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    parser.add_argument(
        "--checkpoints",
        type=Path,
        default=JOB.checkpoint_dir or Path("checkpoints"),
        metavar="FOLDER",
        help="default: TRAINYARD_CHECKPOINT_DIR, or ./checkpoints",
    )
    return parser.parse_args()


def synthetic_samples(count: int, seed: int) -> TensorDataset:
    """Inputs [FEATURES] and targets [1], all float32."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, FEATURES, generator=generator)
    targets = torch.sin(inputs.sum(dim=1, keepdim=True) / 2)
    return TensorDataset(inputs, targets)


class Record:
    """The loss of the epoch so far, and seen.csv: what a checkpoint holds besides the training.

    A checkpoint calls state_dict() on all ranks, so that it may gather from them.
    """

    def __init__(self, path: Path, loader: DataLoader) -> None:
        self._path = path
        self._loader = loader
        self._unsaved: list[list[int]] = []  # lines of seen.csv of this rank
        self._loss_sum = 0.0  # over this epoch's samples of this rank
        self._samples = 0  # these

    def step(self, loss: float) -> None:
        """loss: mean over this rank's part of the loader's batch."""
        batch = self._loader.batch
        self._loss_sum += loss * len(batch.samples)
        self._samples += len(batch.samples)
        place = [JOB.attempt, JOB.rank, batch.epoch, batch.iteration]
        self._unsaved += [[*place, sample] for sample in batch.samples]
        if batch.ends_epoch:
            loss_sum, samples = self._totals()
            if JOB.rank == 0:
                print(f"epoch {batch.epoch}: loss {loss_sum / samples:.6f}", flush=True)
            self._loss_sum, self._samples = 0.0, 0

    def state_dict(self) -> dict[str, Any]:
        loss_sum, samples = self._totals()
        return {"loss_sum": loss_sum, "samples": samples, "seen_bytes": self._append()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if JOB.rank == 0:  # the others' parts of the sums begin at 0
            self._loss_sum, self._samples = state["loss_sum"], state["samples"]
            self.truncate(state["seen_bytes"])

    def truncate(self, seen_bytes: int) -> None:
        """What has been seen after the checkpoint will be seen again: it is forgotten."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.truncate(seen_bytes)

    def _totals(self) -> list[float]:
        sums = torch.tensor([self._loss_sum, self._samples], dtype=torch.float64)
        dist.all_reduce(sums)
        return sums.tolist()

    def _append(self) -> int:
        """Rank 0 writes what all ranks have seen; bytes of seen.csv."""
        everyone: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, self._unsaved)
        self._unsaved = []
        if JOB.rank != 0:
            return 0
        with self._path.open("a") as file:
            for lines in everyone:
                for line in lines:
                    print(*line, sep=",", file=file)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()


def train(arguments: argparse.Namespace) -> None:
    dataset = synthetic_samples(arguments.samples, arguments.seed)
    torch.manual_seed(arguments.seed)
    network = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.learning_rate)
    loader = DataLoader(
        dataset,
        batch_size=arguments.batch_size,
        job=JOB,
        workers=arguments.workers,
        seed=arguments.seed,
        stage="load" if arguments.turns else None,
    )
    record = Record(arguments.checkpoints / "seen.csv", loader)
    checkpoint = Checkpoint(
        JOB,
        model=model,
        optimizer=optimizer,
        loader=loader,
        extra={"record": record},
        folder=arguments.checkpoints,
    )
    if checkpoint.restore() == 0 and JOB.rank == 0:
        record.truncate(0)
    for inputs, targets in checkpoint.steps(arguments.epochs, every=arguments.checkpoint_every):
        with JOB.stage("forward") if arguments.turns else contextlib.nullcontext():
            loss = step(model, optimizer, loader, inputs, targets)
        record.step(JOB.loss(loss))
        time.sleep(arguments.step_sleep)


def step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader,
    inputs: Tensor,
    targets: Tensor,
) -> Tensor:
    """The mean loss over this rank's samples: inputs [N, FEATURES], targets [N, 1]."""
    loss = nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    # DDP takes the mean over the processes; what is wanted is the mean over the global batch.
    loader.scale_loss(loss).backward()
    optimizer.step()
    return loss.detach()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")  # with the variables that torchrun, too, sets
    train(arguments)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
