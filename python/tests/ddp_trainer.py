# SPDX-License-Identifier: Apache-2.0
"""A DDP training for test_distributed.py: prints what a rank has seen and come to, as JSON."""

from __future__ import annotations

from trainyard.train import Checkpoint, DataLoader, Job, TrainyardError

JOB: Job

import argparse  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


class Samples:
    """Inputs [4] with augmentation, targets [1]."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        inputs = torch.tensor([1.0, index / 10, (index % 7) / 7, (index % 3) / 3])
        return inputs + 0.05 * torch.rand(4), inputs.sum(dim=0, keepdim=True).sin()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=37)
    parser.add_argument("--samples-of-rank-1", type=int)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--resize", default="keep-batch")
    parser.add_argument("--agree-every", type=int, default=1)
    parser.add_argument("--notice", type=int, default=0, help="iteration in which it is given")
    parser.add_argument("--notice-rank", type=int, default=0)
    parser.add_argument("--own-folders", action="store_true", help="of each rank")
    return parser.parse_args()


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    rank = JOB.rank
    torch.manual_seed(7 + rank)
    random.seed(7 + rank)
    count = arguments.samples
    if rank == 1 and arguments.samples_of_rank_1 is not None:
        count = arguments.samples_of_rank_1
    network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(arguments.dropout), nn.Linear(8, 1))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(Samples(count), arguments.batch, JOB, workers=arguments.workers, seed=3)
    folder = arguments.folder / str(rank) if arguments.own_folders else arguments.folder
    checkpoint = Checkpoint(JOB, model=model, optimizer=optimizer, loader=loader, folder=folder)
    begun = checkpoint.restore()
    seen: list[list[int]] = []
    for inputs, targets in checkpoint.steps(arguments.epochs, every=4):
        noise = 0.01 * random.random() if arguments.dropout else 0.0
        loss = nn.functional.mse_loss(model(inputs), targets + noise)
        optimizer.zero_grad()
        loader.scale_loss(loss).backward()
        optimizer.step()
        seen += [[loader.batch.epoch, sample] for sample in loader.batch.samples]
        if loader.iterations == arguments.notice and rank == arguments.notice_rank:
            os.kill(os.getpid(), signal.SIGTERM)
    parameters = torch.cat([one.detach().flatten() for one in model.parameters()])
    return {
        "begun": begun,
        "iterations": loader.iterations,
        "done": loader.is_done(arguments.epochs),
        "seen": seen,
        "digest": hashlib.sha256(parameters.numpy().tobytes()).hexdigest(),
        "parameters": parameters.tolist(),
        "rate": optimizer.param_groups[0]["lr"],
        "batch": loader.global_batch_size,
    }


def main() -> int:
    global JOB
    arguments = parse_arguments()
    JOB = Job(resize=arguments.resize, agree_every=arguments.agree_every)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        result: dict[str, Any] = train(arguments)
    except TrainyardError as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
    dist.barrier()
    return 0


if __name__ == "__main__":
    sys.exit(main())
