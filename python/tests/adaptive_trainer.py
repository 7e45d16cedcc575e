# SPDX-License-Identifier: Apache-2.0
"""A training whose gradient noise is known, for test_adaptive_batch.py; as a script: on ranks of DDP,
prints what a rank has come to, as JSON.

The loss is |w - x|^2 / 2 on average over samples x, so that the gradient is w - mean(x): the square
is |w - mean|^2, and the variance of its estimate from B samples the sum of the variances of the
components of x, divided by B. Passes take as long as TIMES says, by a clock of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Optional

import torch
from torch import nn

from trainyard.train import AdaptiveBatch, Checkpoint, DataLoader, Job
from trainyard.train.goodput import GradientNoise

DIMENSIONS = 24
SAMPLES = 6400
INITIAL = 32
COMPUTE = (0.05, 0.002)  # seconds of a pass, and of each sample
AVERAGING = 0.03  # seconds, on several ranks


class Samples:
    """Points around a mean, `spread` wide."""

    def __init__(self, spread: float, seed: int = 1) -> None:
        draws = torch.Generator().manual_seed(seed)
        widths = spread * torch.linspace(0.5, 1.5, DIMENSIONS)
        self.points = torch.randn(SAMPLES, DIMENSIONS, generator=draws) * widths + 0.3

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        return self.points[index]

    def noise(self, initial: int = INITIAL) -> GradientNoise:
        """Of the gradient at w = 0."""
        square = float(self.points.mean(dim=0).pow(2).sum())
        return GradientNoise(square, float(self.points.var(dim=0).sum()) / initial)


class Distance(nn.Module):
    """Mean of |w - x|^2 / 2 over x [samples, DIMENSIONS]."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(DIMENSIONS))

    def forward(self, x: Any) -> Any:
        return 0.5 * (self.w - x).pow(2).sum(dim=1).mean()


class Training:
    """At learning rate 0 it stays where its noise is known."""

    def __init__(self, job: Job, spread: float = 1.0, rate: float = 0.0, most_part: int = 64,
                 folder: Optional[Path] = None, optimizer: Any = torch.optim.SGD,
                 **options: Any) -> None:
        self.seconds = 0.0
        self.samples = Samples(spread)
        self.model: nn.Module = Distance()
        self._ranks = job.world_size
        if self._ranks > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = optimizer(self.model.parameters(), lr=rate)
        self.loader = DataLoader(self.samples, INITIAL, job, seed=5)
        options = {"most_batch": 1024, "interval": 5.0} | options
        self.adaptive = AdaptiveBatch(self.model, self.optimizer, self.loader, most_part=most_part,
                                      clock=lambda: self.seconds, **options)
        self.checkpoint = Checkpoint(job, self.model, self.optimizer, loader=self.loader,
                                     folder=folder, extra={"adaptive": self.adaptive})
        self.batches: list[int] = []

    def loss_of(self, part: Any) -> Any:
        self.seconds += COMPUTE[0] + COMPUTE[1] * len(part)
        return self.model(part)

    def run(self, iterations: int, steps: Any = None) -> None:
        for batch in steps or self.loader.steps(1000):
            self.adaptive.backward(batch, self.loss_of)
            if self._ranks > 1:
                self.seconds += AVERAGING  # until the next iteration's gradients are there
            self.adaptive.step()
            self.batches.append(self.loader.batch.global_samples)
            if len(self.batches) >= iterations and steps is None:
                return


def main(folder: Path, iterations: int, spread: float, most_part: int) -> None:
    torch.set_num_threads(1)
    job = Job()
    torch.distributed.init_process_group("gloo")
    training = Training(job, spread=spread, most_part=most_part, folder=folder)
    begun = training.checkpoint.restore()
    steps = training.checkpoint.steps(1000, every=1000, max_iterations=iterations)
    training.run(iterations, steps)
    noise = training.adaptive.goodput_model
    assert noise is not None
    print(json.dumps({
        "begun": begun, "batches": training.batches, "gain": training.adaptive.gain,
        "split": [training.adaptive.split.part, training.adaptive.split.accumulated],
        "square": noise.noise.square, "variance": noise.noise.variance,
        "times": noise.times.__dict__, "progress": training.adaptive.progress,
    }), flush=True)
    torch.distributed.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
