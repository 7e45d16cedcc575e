#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training that may be stopped at any step and go on with any number of processes.

A small network learns a synthetic function: PyTorch DDP on the CPU with gloo, one process for each
GPU that Trainyard grants. What makes it fit to be preempted and resized:

- The global batch has a fixed size. Step by step it is cut off the epoch's seeded permutation and
  dealt out to the processes, however many there are. So every sample of every epoch is seen exactly
  once, and the result does not depend on the number of processes.
- A checkpoint holds the model, the optimizer, and the position: the epoch and how much of its
  permutation is done. It replaces the last one as a whole or not at all.
- The processes agree after each step whether one of them has had notice. So they all leave after
  the same step, with a checkpoint of it.

seen.csv beside the checkpoint says who has seen which sample.
"""

from trainyard_job import Job

JOB = Job()  # notice may be given while torch is being imported

import argparse
import functools
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

FEATURES = 8


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Data-parallel training that may be resized.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1009, help="of an epoch")
    parser.add_argument("--batch-size", type=int, default=16, help="of all processes together")
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step-sleep", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--checkpoint-every", type=int, default=20, metavar="STEPS")
    parser.add_argument(
        "--checkpoints",
        type=Path,
        default=Path(os.environ.get("TRAINYARD_CHECKPOINT_DIR", "checkpoints")),
        metavar="FOLDER",
        help="default: TRAINYARD_CHECKPOINT_DIR, or ./checkpoints",
    )
    return parser.parse_args()


# ------------------------------------------------------------------------------------- the samples


def synthetic_samples(count: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, FEATURES, generator=generator)
    targets = torch.sin(inputs.sum(dim=1, keepdim=True) / 2)
    return inputs, targets


@functools.lru_cache(maxsize=1)
def order_of(epoch: int, samples: int, seed: int) -> Tensor:
    """The epoch's permutation of the samples, the same for every process and attempt."""
    generator = torch.Generator().manual_seed(1_000_003 * seed + epoch)
    return torch.randperm(samples, generator=generator)


# ----------------------------------------------------------------------------------- the checkpoint


@dataclass
class Position:
    """How far the training has come."""

    epoch: int = 0
    samples_done: int = 0  # of the epoch
    loss_sum: float = 0.0  # over these
    iterations: int = 0  # steps of all epochs


@dataclass(frozen=True)
class Seen:
    """The samples that one process has seen in one step."""

    rank: int
    epoch: int
    iteration: int
    samples: list[int]


def write_durably(path: Path, content: Any) -> None:
    """Replaces the file as a whole; it is on disk on return."""
    draft = path.with_suffix(".tmp")
    with draft.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)


class Checkpoints:
    """The checkpoint and seen.csv. Only rank 0 uses it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._state = folder / "checkpoint.pt"
        self._seen = folder / "seen.csv"
        self._attempt = os.environ.get("TRAINYARD_ATTEMPT", "0")

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint. What has been seen after it will be seen again: it is forgotten."""
        state = torch.load(self._state) if self._state.exists() else None
        with self._seen.open("ab") as file:
            file.truncate(state["seen_bytes"] if state else 0)
        return state

    def save(self, state: dict[str, Any], seen: list[Seen]) -> None:
        with self._seen.open("a") as file:
            for step in seen:
                for sample in step.samples:
                    fields = (self._attempt, step.rank, step.epoch, step.iteration, sample)
                    print(*fields, sep=",", file=file)
            file.flush()
            os.fsync(file.fileno())
            seen_bytes = file.tell()
        write_durably(self._state, state | {"seen_bytes": seen_bytes})


# ------------------------------------------------------------------------------------- the training


class Training:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._rank = dist.get_rank()
        self._world_size = dist.get_world_size()
        self._inputs, self._targets = synthetic_samples(arguments.samples, arguments.seed)
        torch.manual_seed(arguments.seed)
        network = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))
        self._model = DistributedDataParallel(network)
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=arguments.learning_rate)
        self._position = Position()
        self._unsaved: list[Seen] = []
        self._checkpoints = Checkpoints(arguments.checkpoints) if self._rank == 0 else None
        self._resume()

    def run(self) -> bool:
        """Whether the training has reached its end, else there was notice."""
        stop = False
        while not stop and not self._is_finished():
            stop = self._step()
            if self._position.samples_done == self._arguments.samples:
                self._end_epoch()
            due = self._position.iterations % self._arguments.checkpoint_every == 0
            if due or stop or self._is_finished():
                self._save()
        return self._is_finished()

    def _is_finished(self) -> bool:
        return self._position.epoch == self._arguments.epochs

    def _step(self) -> bool:
        """One step of all processes. True: one of them has had notice."""
        arguments, position = self._arguments, self._position
        order = order_of(position.epoch, arguments.samples, arguments.seed)
        batch = order[position.samples_done :][: arguments.batch_size]
        # The last batch may be short and leave nothing to some: they add zero to the gradients.
        mine = batch[self._rank :: self._world_size]
        loss_sum = nn.functional.mse_loss(
            self._model(self._inputs[mine]), self._targets[mine], reduction="sum"
        )
        self._optimizer.zero_grad()
        # DDP takes the mean over the processes; what is wanted is the mean over the batch.
        (loss_sum * (self._world_size / len(batch))).backward()
        self._optimizer.step()
        time.sleep(arguments.step_sleep)

        sums = torch.tensor([loss_sum.item(), float(JOB.stop_requested())], dtype=torch.float64)
        dist.all_reduce(sums)
        position.samples_done += len(batch)
        position.loss_sum += sums[0].item()
        position.iterations += 1
        self._unsaved.append(Seen(self._rank, position.epoch, position.iterations, mine.tolist()))
        if self._rank == 0:
            JOB.progress(position.iterations)
        return sums[1].item() > 0

    def _end_epoch(self) -> None:
        position = self._position
        if self._rank == 0:
            mean = position.loss_sum / position.samples_done
            print(f"epoch {position.epoch}: loss {mean:.6f}", flush=True)
        position.epoch += 1
        position.samples_done = 0
        position.loss_sum = 0.0

    def _save(self) -> None:
        seen: list[Any] = [None] * self._world_size
        dist.all_gather_object(seen, self._unsaved)
        self._unsaved = []
        if self._checkpoints is not None:
            state = {
                "samples": self._arguments.samples,
                "seed": self._arguments.seed,
                "position": asdict(self._position),
                "model": self._model.module.state_dict(),
                "optimizer": self._optimizer.state_dict(),
            }
            self._checkpoints.save(state, [step for steps in seen for step in steps])
            JOB.checkpointed(self._position.iterations)
        dist.barrier()  # nobody goes on, or leaves, before it is on disk

    def _resume(self) -> None:
        shared: list[Any] = [None if self._checkpoints is None else self._checkpoints.load()]
        dist.broadcast_object_list(shared)
        state = shared[0]
        if state is None:
            return
        if (state["samples"], state["seed"]) != (self._arguments.samples, self._arguments.seed):
            raise SystemExit(
                f"{self._arguments.checkpoints}: is of a training with {state['samples']} samples "
                f"and seed {state['seed']}; expected those of the command line"
            )
        self._position = Position(**state["position"])
        self._model.module.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")  # with the variables that torchrun, too, sets
    training = Training(arguments)
    if training.run() and dist.get_rank() == 0:
        JOB.finished()
    dist.barrier()  # of a training that was finished before: nobody leaves before all have read it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
