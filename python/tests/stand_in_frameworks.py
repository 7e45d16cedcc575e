# SPDX-License-Identifier: Apache-2.0
"""Small trainers that call callbacks as those of Lightning and transformers do.

They stand in for frameworks that are not installed: what the examples touch is there, by the same
names and in the same order. `train_batch(batch)` of a model makes a step and returns the loss.
"""

from __future__ import annotations

import signal
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Optional

import torch


def modules() -> dict[str, types.ModuleType]:
    """`lightning.pytorch` and `transformers`, for sys.modules."""
    lightning = types.ModuleType("lightning.pytorch")
    lightning.Callback = Callback  # type: ignore[attr-defined]
    transformers = types.ModuleType("transformers")
    transformers.TrainerCallback = TrainerCallback  # type: ignore[attr-defined]
    return {
        "lightning": types.ModuleType("lightning"),
        "lightning.pytorch": lightning,
        "transformers": transformers,
    }


class SigtermException(Exception):
    """What Lightning raises after SIGTERM."""


class Callback:
    """lightning.pytorch.Callback, as far as it is used."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None: ...

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None: ...

    def on_train_end(self, trainer: Any, pl_module: Any) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


class LightningTrainer:
    """lightning.pytorch.Trainer: its loop, its handler of SIGTERM and its checkpoints."""

    def __init__(self, max_epochs: int, callbacks: list[Any]) -> None:
        self.global_step = 0
        self.should_stop = False
        self._max_epochs = max_epochs
        self._callbacks = callbacks
        self._epoch = 0
        self._batches_done = 0  # of the epoch
        self._received_sigterm = False
        self._model: Any = None

    def fit(self, model: Any, batches: Any, ckpt_path: Optional[Path] = None) -> None:
        self._model = model
        if ckpt_path is not None:
            self._restore(ckpt_path)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        for callback in self._callbacks:
            callback.on_train_start(self, model)
        while self._epoch < self._max_epochs and not self.should_stop:
            self._run_epoch(batches)
        for callback in self._callbacks:
            callback.on_train_end(self, model)

    def save_checkpoint(self, path: Path) -> None:
        states = {type(one).__qualname__: one.state_dict() for one in self._callbacks}
        torch.save(
            {
                "epoch": self._epoch,
                "batches_done": self._batches_done,
                "global_step": self.global_step,
                "state_dict": self._model.state_dict(),
                "optimizer": self._model.optimizer.state_dict(),
                "callbacks": states,
            },
            path,
        )

    def _restore(self, path: Path) -> None:
        state = torch.load(path)
        self._epoch, self.global_step = state["epoch"], state["global_step"]
        self._batches_done = state["batches_done"]
        self._model.load_state_dict(state["state_dict"])
        self._model.optimizer.load_state_dict(state["optimizer"])
        for callback in self._callbacks:
            callback.load_state_dict(state["callbacks"][type(callback).__qualname__])

    def _run_epoch(self, batches: Any) -> None:
        rest = iter(batches)
        while self._batches_done < len(batches):
            batch, number = next(rest), self._batches_done
            loss = self._model.train_batch(batch)
            self.global_step += 1
            self._batches_done += 1
            for callback in self._callbacks:
                callback.on_train_batch_end(self, self._model, {"loss": loss}, batch, number)
            if self._received_sigterm:
                raise SigtermException
            if self.should_stop:
                return
        self._epoch += 1
        self._batches_done = 0

    def _on_sigterm(self, _number: int, _frame: Any) -> None:
        self._received_sigterm = True


class TrainerCallback:
    """transformers.TrainerCallback, as far as it is used."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any: ...

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any: ...

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any: ...

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any: ...


@dataclass
class TrainingArguments:
    """transformers.TrainingArguments, as far as it is used."""

    output_dir: str
    per_device_train_batch_size: int
    num_train_epochs: int
    save_steps: int
    logging_steps: int = 1


@dataclass
class _State:
    global_step: int = 0
    max_steps: int = 0


@dataclass
class _Control:
    should_training_stop: bool = False
    should_save: bool = False


@dataclass
class HuggingFaceTrainer:
    """transformers.Trainer: its loop, and checkpoints that are written file by file."""

    model: Any
    args: TrainingArguments
    train_dataset: Any
    callbacks: list[Any] = field(default_factory=list)
    state: _State = field(default_factory=_State)
    control: _Control = field(default_factory=_Control)

    def train(self, resume_from_checkpoint: Optional[str] = None) -> None:
        of_epoch = len(list(self._batches(0)))
        self.state.max_steps = of_epoch * self.args.num_train_epochs
        if resume_from_checkpoint is not None:
            self._restore(Path(resume_from_checkpoint))
        while self.state.global_step < self.state.max_steps:
            epoch, skip = divmod(self.state.global_step, of_epoch)
            for batch in list(self._batches(epoch))[skip:]:
                self._step(batch)
                if self.control.should_training_stop:
                    break
            if self.control.should_training_stop:
                break
        self._call("on_train_end")

    def _step(self, batch: Any) -> None:
        loss = self.model.train_batch(batch)
        self.state.global_step += 1
        self.control.should_save = self.state.global_step % self.args.save_steps == 0
        self._call("on_step_end")
        if self.state.global_step % self.args.logging_steps == 0:
            self._call("on_log", logs={"loss": float(loss)})
        if self.control.should_save:
            self._save()
            self._call("on_save")

    def _batches(self, epoch: int) -> Iterator[Any]:
        order = torch.randperm(
            len(self.train_dataset), generator=torch.Generator().manual_seed(epoch)
        )
        for indices in order.split(self.args.per_device_train_batch_size):
            samples = [self.train_dataset[int(index)] for index in indices]
            yield [torch.stack(column) for column in zip(*samples)]

    def _save(self) -> None:
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.model.state_dict(), folder / "pytorch_model.bin")
        torch.save(self.model.optimizer.state_dict(), folder / "optimizer.pt")
        (folder / "trainer_state.json").write_text(str(self.state.global_step))

    def _restore(self, folder: Path) -> None:
        self.model.load_state_dict(torch.load(folder / "pytorch_model.bin"))
        self.model.optimizer.load_state_dict(torch.load(folder / "optimizer.pt"))
        self.state.global_step = int((folder / "trainer_state.json").read_text())

    def _call(self, event: str, **kwargs: Any) -> None:
        for callback in self.callbacks:
            returned = getattr(callback, event)(self.args, self.state, self.control, **kwargs)
            self.control = self.control if returned is None else returned
