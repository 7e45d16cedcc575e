# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a training, and the loop that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO, Iterator, Mapping, Optional

from . import collective, generators, learning_rate
from .errors import CheckpointError, MismatchError
from .job import Job
from .loader import DataLoader
from .store import Damaged, Entry, Store


class Checkpoint:
    """Model, optimizer, scheduler, loader, random generators and what else there is.

    Rank 0 writes; the ranks may read each from its own disk or, where that has not the file, get
    it from rank 0. All of the methods are collective: every rank calls them, in the same order.
    """

    def __init__(
        self,
        job: Job,
        model: Any = None,
        optimizer: Any = None,
        scheduler: Any = None,
        loader: Optional[DataLoader] = None,
        keep: int = 2,
        extra: Optional[Mapping[str, Any]] = None,
        scale_lr: bool = False,
        folder: Optional[Path] = None,
    ) -> None:
        """
        model: a module; of DistributedDataParallel and torch.compile the module inside.
        optimizer, scheduler: have state_dict() and load_state_dict(), as all others here.
        keep: checkpoints that stay, at least 1; 2 so that there is one if the last is damaged.
        extra: further objects with state_dict() and load_state_dict(), by name. state_dict() is
            called on each rank, so that it may be collective; what rank 0's gives is written.
        scale_lr: after a resize the batch of one rank stays, and the learning rate goes with the
            global batch; otherwise the global batch stays, and nothing else changes. Needs loader.
        folder: default the job's checkpoint_dir, or ./checkpoints.
        Raises TypeError without a model, ValueError.
        """
        if model is None:
            raise TypeError("a Checkpoint needs the model: Checkpoint(job, model, ...)")
        if keep < 1:
            raise ValueError(f"keep is at least 1, not {keep}")
        self._job = job
        self._parts = {"model": _unwrapped(model)}
        for name, part in (("optimizer", optimizer), ("scheduler", scheduler)):
            if part is not None:
                self._parts[name] = part
        self._extra = dict(extra or {})
        self._optimizer = optimizer
        self._scheduler = scheduler
        self._loader = loader
        if loader is not None:
            loader.scales = loader.scales or scale_lr
        elif scale_lr:
            raise ValueError("scale_lr needs the loader, whose batch goes with the world size")
        self.folder = Path(folder or job.checkpoint_dir or "checkpoints")
        self._store = Store(self.folder, keep)
        self._restored = False
        self._saved: Optional[int] = None  # iterations of the last checkpoint
        self._finished = False

    # ------------------------------------------------------------------------------ the loop

    def steps(
        self, epochs: int, every: int = 100, max_iterations: Optional[int] = None
    ) -> Iterator[Any]:
        """The loader's batches until `epochs` epochs are done in all, from the last checkpoint on.

        every: iterations between checkpoints. max_iterations: the training ends after so many, all
        attempts together, even within an epoch. After the body of the loop has run it says progress
        and whether all ranks are to stop; at notice and at the end it saves a checkpoint: which of
        the two it was says `finished`. After the end the job counts as finished once the process
        ends in order (Job.reached_end). A checkpoint that cannot be written (a full disk) is noted
        and tried again later; at the end it raises CheckpointError. Raises StageError where a
        stage is open at the end of an iteration, and what `restore` and the loader raise.
        """
        if self._loader is None:
            raise ValueError("steps() needs the loader: Checkpoint(..., loader=loader)")
        if every < 1:
            raise ValueError(f"every is at least 1, not {every}")
        if max_iterations is not None and max_iterations < 1:
            raise ValueError(f"max_iterations is at least 1, not {max_iterations}")
        loader, job = self._loader, self._job
        self._end(False)
        if not self._restored:
            self.restore()

        def is_done() -> bool:
            return loader.is_done(epochs) or (
                max_iterations is not None and loader.iterations >= max_iterations
            )

        done, stop = is_done(), False
        for batch in () if done else loader.steps(epochs):
            yield batch
            job.check_stages_ended()
            if job.rank == 0:
                job.progress(loader.iterations)
            stop, done = job.should_stop(), is_done()
            if stop or done or loader.iterations % every == 0:
                self._save_within(must=done)
            if stop or done:
                break
        loader.close()
        collective.leave_together()
        self._end(done)

    @property
    def finished(self) -> bool:
        """Whether the last `steps` has come to the end of the training, and was not stopped by
        notice; the same on all ranks. False before and within its loop."""
        return self._finished

    def _end(self, reached: bool) -> None:
        self._finished = reached
        self._job.reached_end(reached)

    def _save_within(self, must: bool) -> None:
        try:
            self.save()
        except CheckpointError as error:
            if self._job.rank == 0:
                self._job.note(str(error))
            if must:
                raise

    # ----------------------------------------------------------------------------- restoring

    def restore(self) -> int:
        """Restores the last whole checkpoint; the iterations done, 0 where there is none.

        Damaged ones are noted and passed over. The random generators go on where they were if the
        world size is the same, else they are seeded anew by iteration and rank. Raises
        CheckpointError where all are damaged, and MismatchError for a checkpoint of another model,
        dataset or later format.
        """
        self._restored = True
        chosen: Any = None
        if self._job.rank == 0:
            try:
                chosen = self._choose()
            except OSError as error:
                chosen = CheckpointError(f"{self.folder} cannot be read: {error}")
        chosen = collective.from_first(chosen)
        if isinstance(chosen, Exception):
            raise chosen
        if chosen is None:
            return 0
        state = self._read(*chosen)
        self._apply(state)
        iterations = int(state["iterations"])
        self._saved = iterations
        if self._job.rank == 0:
            self._job.checkpointed(iterations)
        return iterations

    def _choose(self) -> Any:
        """Rank 0's choice: an entry and its digest, None, or the exception for all ranks."""
        damaged: list[Entry] = []
        reason = ""
        for entry in self._store.entries():
            try:
                digest = self._store.verify(entry)
            except MismatchError as error:
                return error
            except Damaged as error:
                damaged.append(entry)
                reason = reason or str(error)
                continue
            for one in damaged:
                self._store.set_aside(one)
            if damaged:
                self._job.note(
                    f"checkpoint {damaged[0].iterations} is damaged ({reason}); "
                    f"goes on from the one of iteration {entry.iterations}"
                )
            return entry, digest
        if not damaged:
            return None
        text = (
            f"no checkpoint in {self.folder} can be used; the last one: {reason}. "
            "Move them away to begin anew"
        )
        self._job.note(text)
        return CheckpointError(text)

    def _read(self, entry: Entry, digest: str) -> dict[str, Any]:
        """The state: from this rank's disk, if each rank has it there, else from rank 0's."""
        lacks = self._job.rank != 0 and self._store.digest(entry) != digest
        if collective.maxima([float(lacks)])[0] == 0:
            return self._load(entry)
        state = self._load(entry) if self._job.rank == 0 else None
        shared: dict[str, Any] = collective.from_first(state)
        return shared

    def _load(self, entry: Entry) -> dict[str, Any]:
        import torch

        path = self._store.state_path(entry)
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=False)
        except Exception as error:
            raise CheckpointError(f"{path} cannot be read: {error}") from error
        return state

    def _apply(self, state: dict[str, Any]) -> None:
        if self._loader is not None and "loader" in state:
            self._loader.load_state_dict(state["loader"])
        for name, part in {**self._parts, **self._extra}.items():
            if name not in state["parts"]:
                raise MismatchError(f"the checkpoint has no {name!r}: it is of another training")
            try:
                part.load_state_dict(state["parts"][name])
            except (RuntimeError, ValueError, KeyError) as error:
                raise MismatchError(
                    f"the {name} of the checkpoint does not fit this training's: {error}"
                ) from error
        if self._loader is not None and self._loader.scales and "loader" in state:
            factor = self._loader.global_batch_size / state["loader"]["global_batch_size"]
            learning_rate.scale(self._optimizer, self._scheduler, factor)
        ranks = state["generators"]
        if len(ranks) == self._job.world_size:
            generators.restore(ranks[self._job.rank])
        else:
            generators.seed_anew(int(state["iterations"]), self._job.rank)

    # ------------------------------------------------------------------------------- saving

    def save(self, iterations: Optional[int] = None) -> None:
        """Saves a checkpoint; on return it is on disk, and `checkpoint N` is said.

        iterations: done so far; default: the loader's. Raises CheckpointError, on all ranks, where
        it could not be written; the ones before are there then.
        """
        if iterations is None:
            if self._loader is None:
                raise ValueError("save() needs the iterations where there is no loader")
            iterations = self._loader.iterations
        parts = {**self._parts, **self._extra}
        state = {
            "iterations": iterations,
            "world_size": self._job.world_size,
            "parts": {name: part.state_dict() for name, part in parts.items()},
            "generators": collective.gathered(generators.saved()),
        }
        if self._loader is not None:
            state["loader"] = self._loader.state_dict()
        failure = self._write(iterations, state) if self._job.rank == 0 else None
        failure = collective.from_first(failure)
        if failure is not None:
            raise CheckpointError(failure)
        self._saved = iterations
        if self._job.rank == 0:
            self._job.checkpointed(iterations)
        collective.leave_together()  # a loop of the script's own may end here

    def _write(self, iterations: int, state: dict[str, Any]) -> Optional[str]:
        """Why the checkpoint could not be written, or None."""
        import torch

        def save(file: BinaryIO) -> None:
            torch.save(state, file)

        try:
            self._store.write(iterations, save)
        except Exception as error:  # noqa: BLE001 - the other ranks wait to hear of it
            kept = "there is none before" if self._saved is None else f"{self._saved} is kept"
            what = error.strerror if isinstance(error, OSError) else error
            return f"checkpoint {iterations} not written to {self.folder}: {what}; {kept}"
        return None


def _unwrapped(model: Any) -> Any:
    """The module inside DistributedDataParallel, DataParallel and torch.compile."""
    while True:
        kind = type(model).__name__
        if kind in ("DistributedDataParallel", "DataParallel"):
            model = model.module
        elif kind == "OptimizedModule":
            model = model._orig_mod
        else:
            return model
