# SPDX-License-Identifier: Apache-2.0
"""Some of the samples of a batch."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from . import order

Cut = Callable[[Any, int, int], Any]


def passes(samples: int, count: int) -> Iterator[tuple[int, int, bool]]:
    """Begin and end of each pass over `samples` samples, and whether it is the last one."""
    count = min(count, samples)
    for place in range(count):
        begin, end = order.part(samples, place, count)
        yield begin, end, place == count - 1


def samples_of(batch: Any, begin: int, end: int) -> Any:
    """The samples from `begin` to before `end` of a batch as torch's default_collate makes it:
    tensors [samples, ...] and lists with an entry for each sample, in tuples, lists and dicts.

    Raises TypeError for anything else.
    """
    if hasattr(batch, "shape"):
        return batch[begin:end]
    if isinstance(batch, dict):
        return {name: samples_of(value, begin, end) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        if isinstance(batch, list) and not any(_is_part(one) for one in batch):
            return batch[begin:end]
        cut = [samples_of(value, begin, end) for value in batch]
        return type(batch)(*cut) if hasattr(batch, "_fields") else type(batch)(cut)
    raise TypeError(
        f"a batch with a {type(batch).__name__} cannot be done in several passes: expected tensors "
        "and lists, in tuples, lists and dicts; AdaptiveBatch(split=...) can cut others"
    )


def _is_part(value: Any) -> bool:
    return hasattr(value, "shape") or isinstance(value, (dict, list, tuple))
