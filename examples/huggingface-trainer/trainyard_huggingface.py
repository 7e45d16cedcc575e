# SPDX-License-Identifier: Apache-2.0
"""A callback that lets Trainyard stop, move and resize a training of Hugging Face's Trainer.

Copy this file into a project of your own. Needs `trainyard`, and transformers only when a callback
is made.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any, Optional

from trainyard.train import Job, WorldSizeError

_NAME = re.compile(r"checkpoint-(\d+)")
_WHOLE = "trainyard-whole"  # a file that is made when all others of a checkpoint are on disk


def trainyard_callback(job: Job) -> Any:
    """The callback for `Trainer(callbacks=[...])`. Raises ImportError without transformers."""
    base = importlib.import_module("transformers").TrainerCallback
    return type("TrainyardCallback", (TrainyardHooks, base), {})(job)


def last_checkpoint(output_dir: Path) -> Optional[str]:
    """For `trainer.train(resume_from_checkpoint=...)`: the last whole checkpoint, or None.

    Trainer writes a checkpoint file by file: one that a kill has cut off is passed over.
    """
    if not output_dir.is_dir():
        return None
    numbered = [(_NAME.fullmatch(path.name), path) for path in output_dir.iterdir()]
    whole = [(int(match[1]), path) for match, path in numbered
             if match and (path / _WHOLE).exists()]
    return str(max(whole)[1]) if whole else None


def batch_of_device(global_batch: int, job: Job) -> int:
    """For `TrainingArguments(per_device_train_batch_size=...)`: keeps the global batch.

    Trainer counts steps to find its place again, so a step must have as many samples as before the
    resize. Raises WorldSizeError where the workers cannot share the batch equally.
    """
    each, rest = divmod(global_batch, job.world_size)
    if rest or not each:
        raise WorldSizeError(
            f"a global batch of {global_batch} cannot be shared equally by {job.world_size} workers"
        )
    return each


class TrainyardHooks:
    """A checkpoint at notice; progress, loss and the end are reported.

    Checkpoints in between are Trainer's: save_strategy="steps", save_steps, save_total_limit=2.
    Trainer leaves NaN out of the loss that it logs unless it has logging_nan_inf_filter=False.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._stopped = False

    # Hooks of transformers.TrainerCallback.

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if self._job.rank == 0:
            self._job.progress(state.global_step)
        if self._job.should_stop():
            self._stopped = True
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._job.rank == 0:
            _mark_whole(Path(args.output_dir) / f"checkpoint-{state.global_step}")
            self._job.checkpointed(state.global_step)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        if logs is not None and "loss" in logs:
            self._job.loss(logs["loss"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self._stopped:
            self._job.reached_end()


def _mark_whole(folder: Path) -> None:
    """Makes sure that all files are on disk, and says so by one more."""
    for path in sorted(folder.rglob("*")):
        _sync(path)
    (folder / _WHOLE).touch()
    _sync(folder)
    _sync(folder.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
