#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A training whose times are options: loading, computing and communication take as long as they are
told to, beneath is a small network that learns a function.

A sample is read by waiting (`--load-seconds`), as from a slow disk, so that many processes can load
at the same time on few cores. The computation waits, too (`--forward-seconds`), or computes for so
long (`--compute real`). Data: none but synthetic.
"""

from first import JOB

from common import Defaults, Task, make_parser, parse, run, seeded

import argparse
import os
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

DEFAULTS = Defaults(batch=(16, 64), samples=(512, 4096), epochs=(3, 10))
FEATURES = 8


class Waiting(Dataset[Any]):
    """Samples of a function; each is there after a pause."""

    def __init__(self, samples: int, seconds: float, seed: int, noise: float) -> None:
        self._seconds = seconds
        self._inputs = torch.randn(samples, FEATURES, generator=seeded(seed))
        self._targets = torch.sin(self._inputs.sum(dim=1, keepdim=True) / 2)
        self._targets += noise * torch.randn(samples, 1, generator=seeded(seed, 1))

    def __len__(self) -> int:
        return len(self._inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if self._seconds > 0:
            time.sleep(self._seconds)
        return self._inputs[index], self._targets[index]


def make_task(options: argparse.Namespace) -> Task:
    rate = options.learning_rate or 0.02
    width = 32 if options.size == "tiny" else 256

    seconds = options.forward_seconds / (granted_gpus() if options.scales else 1)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        inputs, targets = batch
        spend(seconds + options.sample_seconds * len(inputs), options.compute)
        return nn.functional.mse_loss(model(inputs), targets)

    return Task(
        dataset=Waiting(options.samples, options.load_seconds, options.seed, options.target_noise),
        model=nn.Sequential(nn.Linear(FEATURES, width), nn.Tanh(), nn.Linear(width, 1)), loss=loss,
        communicated=lambda: spend(options.communication_seconds, "sleep"),
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=rate))


def granted_gpus() -> float:
    """Of the whole job; there may be a process for each, or for each node."""
    here = len(os.environ.get("TRAINYARD_GPUS", "0").split(","))
    return max(1, here / JOB.local_world_size) * JOB.world_size


def spend(seconds: float, how: str) -> None:
    """Waits, or computes, for so long."""
    if how == "sleep":
        time.sleep(seconds)
        return
    end = time.perf_counter() + seconds
    matrix = torch.ones(64, 64)
    while time.perf_counter() < end:
        matrix = matrix @ matrix / 64


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    add = parser.add_argument
    add("--load-seconds", type=float, default=0.0, metavar="SECONDS", help="of each sample")
    add("--forward-seconds", type=float, default=0.0, metavar="SECONDS", help="of each iteration")
    add("--sample-seconds", type=float, default=0.0, metavar="SECONDS",
        help="of each sample, beside --forward-seconds")
    add("--target-noise", type=float, default=0.0, metavar="DEVIATION",
        help="of what is added to the targets; the nearer the training is to its end, the larger "
        "the batch that it can make use of")
    add("--communication-seconds", type=float, default=0.0, metavar="SECONDS",
        help="of each iteration")
    add("--compute", choices=("sleep", "real"), default="sleep")
    add("--scales", action="store_true",
        help="--forward-seconds is what one GPU needs; more of them share it")
    run(parse(parser, DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
