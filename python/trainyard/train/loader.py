# SPDX-License-Identifier: Apache-2.0
"""An elastic data loader: any number of ranks and of loader workers gives the same batches."""

from __future__ import annotations

import time
from array import array
from collections import deque
from contextlib import contextmanager
from typing import Any, Deque, Iterator, Mapping, NoReturn, Optional, Sequence

from . import collective, order, torch_arguments
from .batch import Batch, Issued, check_size
from .errors import MismatchError, WorldSizeError
from .job import Job
from .pool import WorkerPool, refuse_in_worker
from .samples import Collate, Source, own_generators

_WINDOW = 20  # iterations over which the loading share is taken
_REPORT_EVERY = 5.0  # seconds
_PREFETCH = 2  # batches of each worker


class DataLoader:
    """This rank's part of each global batch, over the epochs, from where it stands.

    The order of the samples depends on (seed, epoch) alone, and the random draws of `dataset[i]` on
    (seed, epoch, i): the number of ranks and of loader workers changes neither. The position is
    the samples that all ranks together have been given: after a resize within an epoch the epoch
    still has each sample once.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        job: Job,
        workers: int = 0,
        seed: int = 0,
        collate_fn: Optional[Collate] = None,
        drop_last: bool = False,
        shuffle: bool = True,
        stage: Optional[str] = None,
        start_method: Optional[str] = None,
        **of_torch: NoReturn,
    ) -> None:
        """
        dataset: has len() and dataset[i]; the same on all ranks.
        batch_size: samples of the global batch, at least one for each rank.
        workers: processes of this rank that load; 0: the trainer loads. TRAINYARD_LOADER_WORKERS
            and `tune` lines take its place.
        collate_fn: makes a batch of a list of samples; default: torch's.
        drop_last: leave out the samples of an epoch that do not fill a batch.
        stage: `load` or another stage in which each batch is loaded. Nothing is loaded ahead then;
            the workers load parts of the one batch.
        start_method: `fork`, `spawn` or `forkserver` of workers; default: fork unless CUDA is
            initialised, whatever this Python's own default is.
        Raises ValueError for a dataset or numbers that give no batch, TypeError for arguments that
        only torch's loader has, and LoaderError in a spawned worker that runs the script.
        """
        if of_torch:
            raise torch_arguments.refusal(of_torch)
        self._job = job
        self._samples = len(dataset)
        self._batch_size = batch_size
        self._drop_last = drop_last
        self._shuffle = shuffle
        self._stage = stage
        self._source = Source(dataset, collate_fn, seed)
        refuse_in_worker()
        if workers < 0:
            raise ValueError(f"workers is at least 0, not {workers}")
        check_size(batch_size, self._samples, drop_last)
        self._base_world: Optional[int] = None  # that batch_size is meant for, to scale it
        self.scales = job.resize == "scale-lr"  # the global batch goes with the world size
        self._epoch = 0
        self._done = 0  # samples of the epoch that have been handed out, to all ranks
        self._iterations = 0
        self._batch: Optional[Batch] = None
        self._order: tuple[int, Sequence[int]] = (-1, ())
        self._pool = WorkerPool(self._source, _PREFETCH, start_method)
        self._workers = workers
        self._shares_heard = -1  # as the share at the start is new
        self._adopt_share()
        self._times: Deque[tuple[float, float]] = deque(maxlen=_WINDOW)  # iteration, loading
        self._loading = 0.0  # seconds of the present iteration
        self._runs = 0  # iterations over it that have begun
        self._handed_out: Optional[float] = None  # when the last batch was
        self._reported = time.monotonic()

    # ---------------------------------------------------------------------------- what it gives

    def steps(self, epochs: int) -> Iterator[Any]:
        """This rank's batches until `epochs` epochs are done in all, from where it stands.

        A rank for which a short last batch has nothing gets one of its samples all the same, so
        that it takes part in collective operations: `scale` is 0 then, and `batch.samples` empty.
        A batch counts as done once it is handed out. Raises LoaderError, WorldSizeError, and
        MismatchError where the ranks' datasets differ. Collective at its start.
        """
        rank, world = self._check_world()
        self._pool.forget()
        issued: Deque[Issued] = deque()
        plan = self._plan(epochs, rank, world)
        self._handed_out = None
        self._runs += 1
        run = self._runs
        try:
            while True:
                if run != self._runs:
                    raise RuntimeError("another iteration of this loader has begun: end this one")
                with self._timed():
                    self._adopt_share()
                    one = self._next(plan, issued)
                if one is None:
                    return
                value = self._load(one, plan, issued)
                self._hand_out(one)
                yield value
        finally:
            self._report()  # of a short training, too

    def __len__(self) -> int:
        """Batches of a whole epoch, at the present global batch."""
        whole, rest = divmod(self._samples, self.global_batch_size)
        return whole + (rest > 0 and not self._drop_last)

    def __iter__(self) -> NoReturn:
        """There is none: raises TypeError."""
        raise TypeError(
            "this DataLoader goes through all epochs in one loop, from where it stands: "
            "`for batch in checkpoint.steps(epochs=N)`, or `loader.steps(N)` without a Checkpoint"
        )

    def is_done(self, epochs: int) -> bool:
        """Whether so many epochs have been handed out."""
        left = self._remaining(self._done, self.global_batch_size)
        return self._epoch >= epochs or (self._epoch == epochs - 1 and left == 0)

    @property
    def batch(self) -> Batch:
        """The batch that was handed out last. Raises RuntimeError before the first one."""
        if self._batch is None:
            raise RuntimeError("no batch has been handed out yet")
        return self._batch

    @property
    def scale(self) -> float:
        """What a mean loss over this rank's part is multiplied by, so that DDP's mean over the
        ranks is the mean over the global batch: samples here x ranks / samples of all."""
        batch = self.batch
        return len(batch.samples) * self._job.world_size / batch.global_samples

    def scale_loss(self, loss: Any) -> Any:
        """The mean loss of this rank's part (a scalar tensor), times `scale`."""
        scale = self.scale
        return loss if scale == 1.0 else loss * scale

    @property
    def job(self) -> Job:
        """Whose part of the batches it gives."""
        return self._job

    @property
    def samples(self) -> int:
        """Of the data set."""
        return self._samples

    @property
    def epoch(self) -> int:
        """The epoch of the last batch, or of the next one before the first."""
        return self._epoch

    @property
    def iterations(self) -> int:
        """Batches handed out so far, earlier attempts included; in the loop this one, too."""
        return self._iterations

    @property
    def global_batch_size(self) -> int:
        """Samples of a whole batch, at present."""
        if not self.scales or self._base_world is None:
            return self._batch_size
        return self._batch_size * self._job.world_size // self._base_world

    @global_batch_size.setter
    def global_batch_size(self, samples: int) -> None:
        """From the next batch on that is not loaded yet; all ranks set it alike. ValueError."""
        if self.scales:
            raise ValueError("the batch goes with the world size (scale-lr): it cannot be set, too")
        check_size(samples, self._samples, self._drop_last)
        self._batch_size = samples

    # --------------------------------------------------------------------------------- workers

    @property
    def workers(self) -> int:
        """Loader processes of this rank. Set at any time, it takes effect with the next batch."""
        return self._workers

    @workers.setter
    def workers(self, workers: int) -> None:
        if workers < 0:
            raise ValueError(f"workers is at least 0, not {workers}")
        self._workers = workers

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        return self._pool.pids

    @property
    def loading_share(self) -> float:
        """Share (0 to 1) of the last 20 iterations' time in which the training waited for data."""
        total = sum(whole for whole, _ in self._times)
        return sum(loading for _, loading in self._times) / total if total > 0 else 0.0

    def close(self) -> None:
        """Ends the workers. The next `steps` starts them again."""
        self._pool.close()

    # -------------------------------------------------------------------------------- position

    def state_dict(self) -> dict[str, Any]:
        """The position and what it depends on."""
        return {
            "order": order.FORMAT,
            "epoch": self._epoch,
            "samples_done": self._done,
            "iterations": self._iterations,
            "samples": self._samples,
            "seed": self._source.seed,
            "shuffle": self._shuffle,
            "drop_last": self._drop_last,
            "batch_size": self._batch_size,
            "base_world": self._base_world or self._job.world_size,
            "global_batch_size": self.global_batch_size,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there, with any number of ranks and workers.

        Raises MismatchError where the state is of another dataset size, seed or order.
        """
        for name, mine, what in (
            ("samples", self._samples, "samples in the dataset"),
            ("seed", self._source.seed, "as seed"),
            ("shuffle", self._shuffle, "as shuffle"),
            ("order", order.FORMAT, "as form of the sample order"),
        ):
            if state[name] != mine:
                raise MismatchError(
                    f"the loader has {mine} {what}, its saved state {state[name]}: it is of "
                    "another training; take another checkpoint folder to begin anew"
                )
        self._epoch = int(state["epoch"])
        self._done = int(state["samples_done"])
        self._iterations = int(state["iterations"])
        self._base_world = int(state["base_world"])
        self._batch = None

    # -------------------------------------------------------------------------------- its parts

    def _check_world(self) -> tuple[int, int]:
        """Rank and world size; all ranks must have the same dataset and position."""
        job = self._job
        rank, world = job.rank, job.world_size
        collective.require(world, "a DataLoader")
        if self._base_world is None:
            self._base_world = world
        if self.global_batch_size < world:
            raise WorldSizeError(
                f"a global batch of {self.global_batch_size} samples cannot be dealt out to "
                f"{world} workers: raise batch_size, or resize the job to fewer GPUs"
            )
        states = collective.gathered(self.state_dict())
        for other, state in enumerate(states):
            for name, value in states[0].items():
                if state[name] != value:
                    raise MismatchError(
                        f"the ranks' loaders differ: {name} is {value} on rank 0 and "
                        f"{state[name]} on rank {other}"
                    )
        return rank, world

    def _remaining(self, done: int, size: int) -> int:
        """Samples of an epoch that will still be handed out after `done`, `size` in a batch."""
        left = self._samples - done
        return 0 if self._drop_last and left < size else left

    def _plan(self, epochs: int, rank: int, world: int) -> Iterator[Issued]:
        """All batches from the present position on."""
        epoch, done, iteration = self._epoch, self._done, self._iterations
        size = self.global_batch_size
        while epoch < epochs:
            size = size if self._drop_last else self.global_batch_size  # set since the last one
            left = self._remaining(done, size)
            if left == 0:
                epoch, done = epoch + 1, 0
                continue
            count = min(size, left)
            begin, end = order.part(count, rank, world)
            indices = self._indices(epoch, done + begin, done + end)
            loads = indices if end > begin else self._indices(epoch, done, done + 1)
            iteration += 1
            size = self.global_batch_size  # of the next one: with drop_last it decides
            ends_epoch = self._remaining(done + count, size) == 0
            batch = Batch(epoch, iteration, indices, count, ends_epoch)
            yield Issued(batch, done, loads, None)
            done += count

    def _indices(self, epoch: int, begin: int, end: int) -> Sequence[int]:
        if not self._shuffle:
            return range(begin, end)
        if self._order[0] != epoch:
            self._order = (epoch, order.permutation(self._samples, self._source.seed, epoch))
        return array("q", self._order[1][begin:end])

    def _next(self, plan: Iterator[Issued], issued: Deque[Issued]) -> Optional[Issued]:
        """The next batch, and as many after it given to workers as they take."""
        self._pool.resize(self._workers)
        if self._stage is None:
            self._fill(plan, issued)
        if issued:
            return issued.popleft()
        return next(plan, None)

    def _fill(self, plan: Iterator[Issued], issued: Deque[Issued]) -> None:
        """Gives batches to workers as long as they take some."""
        # Batches that wait to be handed out count, too: memory is bounded.
        while self._pool.has_room() and len(issued) < _PREFETCH * self._workers:
            one = next(plan, None)
            if one is None:
                return
            task = self._pool.submit(one.batch.epoch, one.loads, collated=True)
            issued.append(Issued(one.batch, one.begin, one.loads, task))

    def _load(self, one: Issued, plan: Iterator[Issued], issued: Deque[Issued]) -> Any:
        if self._stage is not None:
            with self._job.stage(self._stage), self._timed():  # not the wait for the turn
                return self._load_whole(one)
        with self._timed():
            if one.task is None:
                return self._load_here(one)
            return self._pool.take(one.task, lambda: self._fill(plan, issued))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self._loading += time.monotonic() - begun

    def _load_here(self, one: Issued) -> Any:
        with own_generators():
            return self._source.batch(one.batch.epoch, one.loads)

    def _load_whole(self, one: Issued) -> Any:
        """Loads the batch now, divided among the workers."""
        if self._workers == 0:
            return self._load_here(one)
        epoch = one.batch.epoch
        parts = order.chunks(one.loads, self._pool.size)
        numbers = [self._pool.submit(epoch, part, collated=False) for part in parts]
        samples = [sample for number in numbers for sample in self._pool.take(number)]
        with own_generators():
            return self._source.collated(samples, epoch, one.loads)

    def _hand_out(self, one: Issued) -> None:
        now = time.monotonic()
        if self._handed_out is not None:
            self._times.append((now - self._handed_out, self._loading))
        self._handed_out = now
        self._loading = 0.0
        self._batch = one.batch
        self._epoch = one.batch.epoch
        self._done = one.begin + one.batch.global_samples
        self._iterations = one.batch.iteration
        if now - self._reported >= _REPORT_EVERY:
            self._reported = now
            self._report()

    def _report(self) -> None:
        if self._job.rank == 0 and self._times:
            self._job.metric("loading_share", round(self.loading_share, 4))
            mean = sum(whole for whole, _ in self._times) / len(self._times)
            self._job.metric("iteration_s", mean)
            self._job.metric("loader_workers", self._workers)

    def _adopt_share(self) -> None:
        """Takes this rank's part of the node's loader workers when the share is new."""
        heard = self._job.shares_heard
        if heard == self._shares_heard:
            return
        self._shares_heard = heard
        total = self._job.share.loader_workers
        if total is not None:
            begin, end = order.part(total, self._job.local_rank, self._job.local_world_size)
            self._workers = max(end - begin, 1) if total > 0 else 0
