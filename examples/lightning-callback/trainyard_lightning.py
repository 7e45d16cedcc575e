# SPDX-License-Identifier: Apache-2.0
"""A callback that lets Trainyard stop, move and resize a training of PyTorch Lightning.

Copy this file into a project of your own. Needs `trainyard`, and Lightning only when a callback is
made: `lightning.pytorch` or `pytorch_lightning`, 2.0 or later.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any, Iterator, Optional

from trainyard.train import DataLoader, Job

_NAME = re.compile(r"step-(\d+)\.ckpt")


def trainyard_callback(job: Job, folder: Path, **options: Any) -> Any:
    """The callback for `Trainer(callbacks=[...])`; options as those of `TrainyardHooks`.

    Raises ImportError where Lightning is not installed.
    """
    base = _lightning().Callback
    return type("TrainyardCallback", (TrainyardHooks, base), {})(job, folder, **options)


def last_checkpoint(folder: Path) -> Optional[Path]:
    """For `trainer.fit(..., ckpt_path=...)`: the last whole checkpoint, or None."""
    found = _checkpoints(folder)
    return found[-1] if found else None


class TrainyardHooks:
    """Checkpoints at notice and now and then; progress, loss and the end are reported."""

    def __init__(
        self,
        job: Job,
        folder: Path,
        loader: Optional["EpochLoader"] = None,
        every: int = 500,
        keep: int = 2,
        loss_every: int = 50,
    ) -> None:
        """
        folder: of the checkpoints, on a disk that all ranks share.
        loader: that the trainer is given; its position goes into the checkpoints.
        every, loss_every: optimizer steps between checkpoints, and between reports of the loss.
        keep: checkpoints that stay.
        """
        super().__init__()
        self._job = job
        self._folder = folder
        self._loader = loader
        self._every = every
        self._keep = keep
        self._loss_every = loss_every
        self._saved = -1  # optimizer steps
        self._stopped = False
        self._on_sigterm = signal.getsignal(signal.SIGTERM)  # Job's

    # Hooks of lightning.pytorch.Callback.

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # Lightning's own handler would end the training by an exception, without a checkpoint.
        signal.signal(signal.SIGTERM, self._on_sigterm)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        job, step = self._job, trainer.global_step
        if job.rank == 0:
            job.progress(step)
        if step % self._loss_every == 0 and outputs is not None:
            job.loss(outputs["loss"] if isinstance(outputs, dict) else outputs)
        job.check_stages_ended()
        self._stopped = job.should_stop()
        if self._stopped or step % self._every == 0:
            self._save(trainer)
        if self._stopped:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self._stopped:
            return
        self._save(trainer)
        self._job.reached_end()

    def state_dict(self) -> dict[str, Any]:
        return {} if self._loader is None else {"loader": self._loader.loader.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        if self._loader is not None and "loader" in state_dict:
            self._loader.loader.load_state_dict(state_dict["loader"])

    def _save(self, trainer: Any) -> None:
        """Collective. The checkpoint appears as a whole."""
        step = trainer.global_step
        if step == self._saved:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / ".draft.ckpt"
        trainer.save_checkpoint(draft)
        self._saved = step
        if self._job.rank == 0:
            _sync(draft)
            draft.replace(self._folder / f"step-{step}.ckpt")
            _sync(self._folder)
            self._job.checkpointed(step)
            for old in _checkpoints(self._folder)[: -self._keep]:
                shutil.rmtree(old) if old.is_dir() else old.unlink()


class EpochLoader:
    """Trainyard's loader for frameworks that go through an iterable once for each epoch."""

    def __init__(self, loader: DataLoader, batches: int) -> None:
        """batches: of an epoch, those done included, as Lightning counts them."""
        self.loader = loader
        self._batches = batches

    def __len__(self) -> int:
        return self._batches

    def __iter__(self) -> Iterator[Any]:
        """The rest of this epoch, or the next one where this is done."""
        epochs = self.loader.epoch + 1
        if self.loader.is_done(epochs):
            epochs += 1
        return self.loader.steps(epochs)


def _lightning() -> Any:
    try:
        return importlib.import_module("lightning.pytorch")
    except ImportError:
        return importlib.import_module("pytorch_lightning")


def _checkpoints(folder: Path) -> list[Path]:
    """The latest last."""
    if not folder.is_dir():
        return []
    numbered = [(_NAME.fullmatch(path.name), path) for path in folder.iterdir()]
    return [path for _, path in sorted((int(match[1]), path) for match, path in numbered if match)]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
