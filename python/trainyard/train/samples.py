# SPDX-License-Identifier: Apache-2.0
"""Loading samples: each with random draws of its own, in the trainer or in a loader worker."""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Sequence, cast

from .order import sample_seed

Collate = Callable[[Sequence[Any]], Any]


class Source:
    """A dataset with its collate function and seed."""

    def __init__(self, dataset: Any, collate: Optional[Collate], seed: int) -> None:
        """`collate`: makes a batch of a list of samples; None: torch's default, which needs torch.

        Without torch the default leaves the list as it is.
        """
        self.dataset = dataset
        self.seed = seed
        self._collate = collate

    def samples(self, epoch: int, indices: Sequence[int]) -> list[Any]:
        """The samples; each is loaded with the random generators seeded for it."""
        loaded = []
        for index in indices:
            _seed_all(sample_seed(self.seed, epoch, index))
            loaded.append(self.dataset[index])
        return loaded

    def batch(self, epoch: int, indices: Sequence[int]) -> Any:
        """The samples, collated. REQUIRES: at least one index."""
        return self.collated(self.samples(epoch, indices), epoch, indices)

    def collated(self, samples: list[Any], epoch: int, indices: Sequence[int]) -> Any:
        """The samples as a batch."""
        if self._collate is None:
            self._collate = _default_collate()
        _seed_all(sample_seed(self.seed, epoch, -1 - indices[0]))
        return self._collate(samples)


def _default_collate() -> Collate:
    try:
        from torch.utils.data import default_collate
    except ImportError:
        return list
    return cast(Collate, default_collate)


@contextmanager
def own_generators() -> Iterator[None]:
    """Leaves the random generators as they were before."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    states = (
        random.getstate(),
        torch.default_generator.get_state() if torch is not None else None,
        numpy.random.get_state() if numpy is not None else None,
    )
    try:
        yield
    finally:
        random.setstate(states[0])
        if torch is not None:
            torch.default_generator.set_state(states[1])
        if numpy is not None:
            numpy.random.set_state(states[2])


def _seed_all(seed: int) -> None:
    """Seeds random, and torch (CPU) and numpy where they are imported."""
    random.seed(seed)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        # Not torch.manual_seed: that would keep a call for each GPU of a process without CUDA.
        torch.default_generator.manual_seed(seed)
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)
