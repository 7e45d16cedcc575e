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
