# SPDX-License-Identifier: Apache-2.0
"""What a loader says of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence


@dataclass(frozen=True)
class Batch:
    """What was handed out last.

    epoch: from 0; iteration: batches of all epochs up to this one, from 1; samples: indices of
    this rank's part; global_samples: samples of the whole batch; ends_epoch: the epoch's last one.
    """

    epoch: int
    iteration: int
    samples: Sequence[int]
    global_samples: int
    ends_epoch: bool


@dataclass(frozen=True)
class Issued:
    """A batch that is to be handed out, after those before it."""

    batch: Batch
    begin: int  # of the global batch, in the epoch's order
    loads: Sequence[int]  # what is loaded: the rank's samples, or one in place of none
    task: Optional[int]  # number in the pool; None: not given to a worker


def check_size(batch_size: int, samples: int, drop_last: bool) -> None:
    """Raises ValueError where batches of that size give none of a data set."""
    if batch_size < 1:
        raise ValueError(f"batch_size is at least 1, not {batch_size}")
    if samples == 0:
        raise ValueError("the dataset has no samples")
    if drop_last and samples < batch_size:
        raise ValueError(
            f"drop_last leaves nothing of a dataset with {samples} samples, which do not fill one "
            f"batch of {batch_size}"
        )
