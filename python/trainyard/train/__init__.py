# SPDX-License-Identifier: Apache-2.0
"""What a training script needs to be stopped, moved and resized by Trainyard (docs/pytorch.md)."""

from .adaptive_batch import AdaptiveBatch
from .batch import Batch
from .checkpoint import Checkpoint
from .errors import (
    CheckpointError,
    LoaderError,
    MismatchError,
    NonFiniteLoss,
    StageError,
    TrainyardError,
    WorldSizeError,
)
from .job import Job, Lease
from .loader import DataLoader
from .order import sample_seed
from .supervisor import Share

__all__ = [
    "AdaptiveBatch",
    "Batch",
    "Checkpoint",
    "CheckpointError",
    "DataLoader",
    "Job",
    "Lease",
    "LoaderError",
    "MismatchError",
    "NonFiniteLoss",
    "Share",
    "StageError",
    "TrainyardError",
    "WorldSizeError",
    "sample_seed",
]
