# SPDX-License-Identifier: Apache-2.0
"""Which samples are in which batch, and the seeds of their augmentation.

Everything here is a function of (seed, epoch, index) in the standard library's arithmetic: no
version of Python or torch changes it, and neither does the number of ranks or loader workers.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from typing import Sequence

FORMAT = 1  # of the order; another one would be refused by checkpoints of this one


def seed_of(*numbers: int) -> int:
    """A seed from 0 to 2^63 - 1, the same for the same numbers anywhere (BLAKE2b)."""
    text = ",".join(str(number) for number in numbers).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def sample_seed(seed: int, epoch: int, index: int) -> int:
    """The seed with which sample `index` is loaded in this epoch."""
    return seed_of(seed, epoch, index)


def permutation(samples: int, seed: int, epoch: int) -> "array[int]":
    """The epoch's order of the samples 0 to samples - 1.

    A Fisher-Yates shuffle by random.Random(...).random(), whose numbers Python promises to keep
    from version to version. O(samples): about 0.4 s for a million.
    """
    draw = random.Random(seed_of(seed, epoch)).random
    order = array("q", range(samples))
    for last in range(samples - 1, 0, -1):
        other = int(draw() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order


def part(count: int, rank: int, ranks: int) -> tuple[int, int]:
    """Begin and end of a rank's part of `count` samples: equal parts, one more for the first."""
    each, more = divmod(count, ranks)
    begin = rank * each + min(rank, more)
    return begin, begin + each + (1 if rank < more else 0)


def chunks(indices: Sequence[int], count: int) -> list[Sequence[int]]:
    """The indices in at most `count` parts, none of them empty, in their order."""
    bounds = [part(len(indices), place, count) for place in range(min(count, len(indices)))]
    return [indices[begin:end] for begin, end in bounds]
