# SPDX-License-Identifier: Apache-2.0
"""The errors that the library raises. Each message says what happened and what to do next."""

from __future__ import annotations


class TrainyardError(RuntimeError):
    """Base of all errors of this library."""


class NonFiniteLoss(TrainyardError):
    """The loss is NaN or infinite, and the job is to stop then (`Job(on_nan="stop")`)."""


class StageError(TrainyardError):
    """A stage was begun while another one had not ended, or has an unknown name."""


class WorldSizeError(TrainyardError):
    """The number of workers does not go with the batch or with torch.distributed."""


class CheckpointError(TrainyardError):
    """A checkpoint could not be written, or there are checkpoints and none can be used."""


class MismatchError(TrainyardError):
    """The checkpoint is of another training: another dataset, seed, model or library format."""


class LoaderError(TrainyardError):
    """A sample could not be loaded. The message has the traceback of the loader worker."""
