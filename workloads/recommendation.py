#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Recommendation by neural collaborative filtering (NCF): will a user like an item?

Data: a folder with the ratings of MovieLens (`ratings.csv`, `ratings.dat` or `u.data`). Each rating
is a positive sample, with four items drawn for it that the user has not rated. Published form:
embeddings of 64, layers of 256, 256, 128 and 64 (MLPerf's), Adam with rate 1e-3. Tiny: embeddings
of 8.
"""

from common import Defaults, Task, make_parser, parse, run, seeded

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

DEFAULTS = Defaults(batch=(128, 2048), samples=(4096, 1_000_000), epochs=(4, 14))
NEGATIVES = 4  # for each rating


class Synthetic(Dataset[Any]):
    """Users and items have hidden tastes; a user likes the items of similar taste."""

    def __init__(self, samples: int, users: int, items: int, seed: int) -> None:
        self.users, self.items = users, items
        self._samples, self._seed = samples, seed
        self._user_tastes = torch.randn(users, 4, generator=seeded(seed, 0))
        self._item_tastes = torch.randn(items, 4, generator=seeded(seed, 1))

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> tuple[int, int, float]:
        draws = seeded(self._seed, 2, index)
        user = int(torch.randint(self.users, (1,), generator=draws))
        item = int(torch.randint(self.items, (1,), generator=draws))
        likes = float(self._user_tastes[user] @ self._item_tastes[item]) > 0
        return user, item, float(likes)


class MovieLens(Dataset[Any]):
    def __init__(self, folder: Path) -> None:
        pairs = read_ratings(folder)
        self._users, user_numbers = pairs[:, 0].unique(return_inverse=True)
        self._items, item_numbers = pairs[:, 1].unique(return_inverse=True)
        self.users, self.items = len(self._users), len(self._items)
        self._pairs = torch.stack([user_numbers, item_numbers], dim=1)
        self._rated = set(map(tuple, self._pairs.tolist()))

    def __len__(self) -> int:
        return len(self._pairs) * (1 + NEGATIVES)

    def __getitem__(self, index: int) -> tuple[int, int, float]:
        """The loader has seeded the generators for the sample and the epoch."""
        user, item = self._pairs[index // (1 + NEGATIVES)].tolist()
        if index % (1 + NEGATIVES) == 0:
            return user, item, 1.0
        for _ in range(100):  # a user may have rated everything
            other = int(torch.randint(self.items, (1,)))
            if (user, other) not in self._rated:
                break
        return user, other, 0.0


def read_ratings(folder: Path) -> Tensor:
    """User and item of each rating."""
    for name, separator in (("ratings.csv", ","), ("ratings.dat", "::"), ("u.data", "\t")):
        if (file := folder / name).exists():
            break
    else:
        raise SystemExit(f"{folder}: has no ratings; expected ratings.csv, ratings.dat or u.data")
    pairs = []
    for number, line in enumerate(file.read_text(encoding="latin1").splitlines(), 1):
        user, _, rest = line.partition(separator)
        item = rest.partition(separator)[0]
        if number == 1 and not user.isdigit():
            continue  # the names of the columns
        if not (user.isdigit() and item.isdigit()):
            raise SystemExit(f"{file}:{number}: is {line!r}; expected a user and an item")
        pairs.append((int(user), int(item)))
    return torch.tensor(pairs)


class NeuralFiltering(nn.Module):
    """A product of embeddings and a network over others, weighed together."""

    def __init__(self, users: int, items: int, factors: int, widths: list[int]) -> None:
        super().__init__()
        self.user_factors = nn.Embedding(users, factors)
        self.item_factors = nn.Embedding(items, factors)
        self.user_inputs = nn.Embedding(users, widths[0] // 2)
        self.item_inputs = nn.Embedding(items, widths[0] // 2)
        layers: list[nn.Module] = []
        for before, after in zip(widths, widths[1:]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(factors + widths[-1], 1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        product = self.user_factors(users) * self.item_factors(items)
        inputs = torch.cat([self.user_inputs(users), self.item_inputs(items)], dim=1)
        return self.head(torch.cat([product, self.layers(inputs)], dim=1)).squeeze(1)


def loss(model: nn.Module, batch: Any) -> Tensor:
    users, items, likes = batch
    return nn.functional.binary_cross_entropy_with_logits(model(users, items), likes.float())


def make_task(options: argparse.Namespace) -> Task:
    published = options.size == "published"
    dataset: Synthetic | MovieLens
    if options.data:
        dataset = MovieLens(options.data)
    else:
        users, items = (138_493, 26_744) if published else (64, 64)
        dataset = Synthetic(options.samples, users, items, options.seed)
    model = NeuralFiltering(dataset.users, dataset.items, 64, [256, 256, 128, 64]) if published \
        else NeuralFiltering(dataset.users, dataset.items, 8, [32, 16, 8])
    rate = options.learning_rate or (1e-3 if published else 1e-2)
    return Task(dataset=dataset, model=model, loss=loss,
                optimizer=lambda parameters: torch.optim.Adam(parameters, lr=rate))


def main(arguments: list[str] | None = None) -> None:
    run(parse(make_parser(__doc__), DEFAULTS, arguments), make_task)


if __name__ == "__main__":
    main()
