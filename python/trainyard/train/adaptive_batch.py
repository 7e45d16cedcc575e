# SPDX-License-Identifier: Apache-2.0
"""Batches that grow as far as it speeds the training up (Pollux, OSDI'21)."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Callable, Mapping, Optional

from . import collective, cut, step_times
from .errors import MismatchError
from .goodput import BatchLimits, GoodputModel, Split, StepTimes, first_split, within
from .gradient_noise import NoiseMean, Squares
from .gradients import AloneGradients, RankGradients
from .loader import DataLoader
from .marks import Mark, Marks
from .step_log import IterationTimes, Place, StepLog
from .step_times import MeasuredStep

_WARM_UP = 2  # iterations with a new batch that are not timed
_WORTH = 1.05  # times the present goodput: what a change of the batch must promise
_GROWTH = 2  # times the largest part that was timed: the most that is tried, as with GPUs
_PARTS = 2  # times that, for the batch: one GPU needs two passes for more than the initial batch
_MOVED = 0.05  # share by which a measured time has to change for a new fit

_RATES = {"adascale": 1.0, "square-root": 0.5, "fixed": 0.0}  # powers of the gain


class AdaptiveBatch:
    """Measures how noisy the gradient is and how long iterations take, and sets the loader's batch
    so that the goodput is the highest on the GPUs that there are: throughput times statistical
    efficiency, Pollux (OSDI'21), sections 3 and 4.1.

    In place of loss.backward() and optimizer.step(), on each rank, for each batch of the loader:

        loss = adaptive.backward(batch, lambda part: criterion(model(part[0]), part[1]))
        adaptive.step()

    Goodput and what it follows from are reported as metrics, by which the policies `pollux` and
    `sia` divide the GPUs (docs/policies/pollux.md). Each rank has one GPU. Kept in a checkpoint by
    Checkpoint(..., extra={"adaptive": adaptive}), it goes on with what it knows, also on another
    number of GPUs. All methods are collective.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        loader: DataLoader,
        *,
        most_batch: int,
        most_part: int,
        least_part: int = 1,
        adapt: bool = True,
        learning_rate: Optional[str] = None,
        memory: float = 1000.0,
        interval: float = 30.0,
        split: Optional[cut.Cut] = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        model: on several ranks in DistributedDataParallel, which gets a communication hook.
        loader: its batch_size is the initial batch, for which the learning rate is meant.
        most_batch: samples of the largest batch of all ranks together; not above the data set's.
        least_part, most_part: samples that a GPU takes in one pass; larger batches are done in
            several passes whose gradients are added.
        adapt: False: measures and reports, and the batch stays the initial one.
        learning_rate: `adascale`: times the gain, the progress of an iteration in iterations with
            the initial batch; `square-root`: times its root; `fixed`. Default: square-root for
            optimizers that divide by the gradient's size (Adam, RMSprop ...), else adascale.
        memory: initial batches after which a measurement of noise counts 1/e of what it did.
        interval: seconds between choices.
        split: (batch, begin, end) -> those samples of the rank's batch; default: cuts tensors
            [samples, ...] and lists, in tuples, lists and dicts.
        clock: seconds; for tests.
        Raises ValueError for limits or names that do not go together, and WorldSizeError where
        there are several ranks without DistributedDataParallel.
        """
        self._model = model
        self._optimizer = optimizer
        self._loader = loader
        self._job = loader.job
        self._limits = BatchLimits(loader.global_batch_size, most_batch, least_part, most_part)
        _check(self._limits, loader)
        rate = learning_rate or ("square-root" if "eps" in optimizer.defaults else "adascale")
        if rate not in _RATES:
            raise ValueError(f"learning_rate is one of {', '.join(_RATES)}, not {rate!r}")
        self._power = _RATES[rate]
        self._adapt = adapt
        self._interval = interval
        self._cut = split or cut.samples_of
        self._world = self._job.world_size
        collective.require(self._world, "an AdaptiveBatch")
        self._marks = Marks(optimizer, clock)
        nodes = len(set(collective.gathered(self._job.node_rank)))
        self._place = Place(self._marks.device, nodes, self._world)
        self._alone = AloneGradients(optimizer)
        self._ranks: Optional[RankGradients] = None
        if self._world > 1:
            self._ranks = RankGradients(model, optimizer, self._note_ready)
        self._noise = NoiseMean(memory)
        self._log = StepLog()
        self._times: Optional[StepTimes] = None
        self._fitted: list[MeasuredStep] = []
        self._splits: dict[int, Split] = {}  # by samples: how the loader's batches are to be done
        self._split = Split(0)
        self._progress = 0.0
        self._gain = 1.0
        self._ready: Optional[Mark] = None  # of several ranks: when this one's gradients were there
        self._ended: Optional[Mark] = None  # when the last backward() was done
        self._same = 0  # iterations with this split, after the first one
        self._last: Optional[Split] = None  # of the last iteration
        self._is_due = False
        self._decided = self._marks.clock()
        self._job.keep_metrics(GoodputModel(_UNKNOWN, self._noise.noise, self._limits).metrics(1))
        self._use(first_split(self._world, self._limits))

    # ------------------------------------------------------------------------------ an iteration

    def backward(self, batch: Any, loss_of: Callable[[Any], Any]) -> Any:
        """The gradient of the mean loss over the loader's batch, in the parameters' `grad`; returns
        the mean loss over this rank's samples, a tensor without gradient.

        batch: as the loader has given it; loss_of: (part of it) -> mean loss over the part, a
        scalar tensor with gradient. It may be called several times, each with some of the samples.
        Between this and `step` gradients may be clipped.
        """
        now = self._loader.batch
        split = self._splits.get(now.global_samples)
        passes = split.accumulated + 1 if split else self._passes(len(now.samples))
        samples = max(len(now.samples), 1)
        began = self._marks.now()
        self._optimizer.zero_grad()
        measuring = self._ranks or self._alone
        measuring.begin()
        mean: Any = 0.0
        for begin, end, is_last in cut.passes(samples, passes):
            piece = batch if passes == 1 else self._cut(batch, begin, end)
            with nullcontext() if is_last else self._without_averaging():
                loss = loss_of(piece) * ((end - begin) / samples)
                self._loader.scale_loss(loss).backward()
            mean = mean + loss.detach()
            if self._ranks is None:
                self._alone.end_pass(is_last, passes)
        self._take(split, now.global_samples, began)
        return mean

    def step(self) -> None:
        """The optimizer's step, at the learning rate for the batch; then, now and then, the choice
        of the next batches."""
        groups = self._optimizer.param_groups
        rates = [group["lr"] for group in groups]
        factor = self._gain**self._power
        for group, rate in zip(groups, rates):
            group["lr"] = rate * factor
        try:
            self._optimizer.step()
        finally:
            for group, rate in zip(groups, rates):
                group["lr"] = rate  # schedulers go by it
        if self._is_due:
            self._decide()

    # -------------------------------------------------------------------------- what it has found

    @property
    def split(self) -> Split:
        """How new batches are done: samples of a GPU in a pass, and passes before the last one."""
        return self._split

    @property
    def gain(self) -> float:
        """Progress of the last iteration, in iterations with the initial batch."""
        return self._gain

    @property
    def progress(self) -> float:
        """Of all iterations and attempts, in iterations with the initial batch: what schedules of
        the learning rate go by."""
        return self._progress

    @property
    def noise_scale(self) -> Optional[float]:
        """Samples: the gradient noise scale, variance / square x initial batch. A batch as large as
        this is about half as efficient as a small one. None: too little is measured."""
        noise = self._noise.noise
        if not self._noise.is_known or noise.square <= 0:
            return None
        return noise.variance / noise.square * self._limits.initial

    @property
    def goodput_model(self) -> Optional[GoodputModel]:
        """What is reported; None: too little is measured."""
        if self._times is None or not self._noise.is_known:
            return None
        return GoodputModel(self._times, self._noise.noise, self._limits)

    def state_dict(self) -> dict[str, Any]:
        """What has been measured."""
        return {
            "initial_batch": self._limits.initial,
            "noise": self._noise.state_dict(),
            "steps": self._log.state_dict(),
            "progress": self._progress,
            "split": [self._place.gpus, self._split.part, self._split.accumulated],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on with that; the batch is chosen anew. Raises MismatchError where the initial batch
        was another one."""
        if state["initial_batch"] != self._limits.initial:
            raise MismatchError(
                f"the initial batch is {self._limits.initial}, the checkpoint's "
                f"{state['initial_batch']}: what was measured goes by it"
            )
        self._noise.load_state_dict(state["noise"])
        self._log.load_state_dict(state["steps"])
        self._progress = float(state["progress"])
        self._alone.forget()
        self._ended = self._last = self._times = None
        self._fitted = []
        gpus, part, accumulated = state["split"]
        last = Split(part, accumulated)
        is_allowed = (
            gpus == self._place.gpus and last.samples(gpus) <= self._limits.most
            and self._limits.least_part <= part <= self._limits.most_part
        )
        self._split = last if is_allowed else Split(0)
        self._decide()

    # ---------------------------------------------------------------------------------- its parts

    def _passes(self, samples: int) -> int:
        """Of a batch that was not planned: the rest of an epoch."""
        return max(-(-samples // self._limits.most_part), 1)

    def _without_averaging(self) -> Any:
        return self._model.no_sync() if hasattr(self._model, "no_sync") else nullcontext()

    def _note_ready(self) -> None:
        self._ready = self._marks.now()

    def _take(self, split: Optional[Split], global_samples: int, began: Mark) -> None:
        """Notes what the iteration says; `split`: None where it is no batch as planned."""
        squares = self._squares_alone(split)
        own = self._ranks.lengths() if self._ranks else (0.0, 0.0)
        ended = self._marks.now()
        iteration = passes = 0.0
        if self._ended is not None:
            iteration = passes = self._marks.between(self._ended, ended)
        if self._ready is not None:
            passes = self._marks.between(began, self._ready)
        self._ended = ended
        is_time = self._marks.clock() - self._decided >= self._interval
        rows = collective.rows([*own, iteration, passes, float(is_time)])
        self._is_due = rows[0][4] > 0
        scale = global_samples / self._limits.initial
        if split is not None:
            if self._ranks is not None:
                of_each = sum(row[0] for row in rows) / len(rows)
                samples = split.part * (split.accumulated + 1)
                squares = Squares(of_each, rows[0][1], self._world, samples)
            if squares is not None and squares.is_finite:
                self._noise.add(squares.noise(self._limits.initial), scale)
            # The others wait for the slowest rank.
            times = IterationTimes(rows[0][2], max(row[3] for row in rows))
            self._take_times(split, times)
        self._gain = self._noise.noise.gain(scale)
        self._progress += self._gain

    def _squares_alone(self, split: Optional[Split]) -> Optional[Squares]:
        if self._ranks is not None:
            return None
        if split is None:
            self._alone.forget()
            return None
        return self._alone.squares(split.accumulated + 1, split.part)

    def _take_times(self, split: Split, times: IterationTimes) -> None:
        self._same = self._same + 1 if split == self._last else 0
        self._last = split
        if self._same >= _WARM_UP:
            self._is_due |= self._log.add(self._place, split, times)

    # ------------------------------------------------------------------------------- the choice

    def _decide(self) -> None:
        """Fits the times, chooses the batch and reports; rank 0 for all."""
        self._is_due = False
        self._decided = self._marks.clock()
        chosen = None
        if self._job.rank == 0:
            self._fit()
            chosen = (self._times, self._choose())
        self._times, split = collective.from_first(chosen)
        self._use(split)
        if self._job.rank == 0:
            self._report()

    def _fit(self) -> None:
        measured = self._log.measured(self._place.device)
        if measured and _differs(measured, self._fitted):
            self._times = step_times.fit(measured)
            self._fitted = measured

    def _choose(self) -> Split:
        model, place = self.goodput_model, self._place
        present = self._split if self._split.part > 0 else None
        if model is None or not self._adapt:
            return present or first_split(place.gpus, self._limits)
        part, samples = self._log.largest
        limits = replace(
            self._limits,
            most=min(self._limits.most, _PARTS * _GROWTH * max(samples, self._limits.initial)),
            most_part=min(self._limits.most_part, _GROWTH * max(part, self._limits.least_part)),
        )
        value, split = replace(model, limits=limits).best(place.nodes, place.gpus)
        split = within(split, place.gpus, limits)
        if present and value < _WORTH * model.goodput(place.nodes, place.gpus, present):
            return present
        return split

    def _use(self, split: Split) -> None:
        samples = split.samples(self._world)
        self._split = split
        self._splits[samples] = split
        self._loader.global_batch_size = samples

    def _report(self) -> None:
        model = self.goodput_model
        if model is None:
            return
        tried = max(one.gpus for one in self._log.measured(self._place.device))
        for name, value in model.metrics(tried).items():
            self._job.metric(name, value)


_UNKNOWN = StepTimes(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)  # for the names of metrics


def _check(limits: BatchLimits, loader: DataLoader) -> None:
    if not 1 <= limits.least_part <= limits.most_part:
        raise ValueError(
            f"least_part is 1 to most_part, {limits.most_part}, not {limits.least_part}"
        )
    if not limits.initial <= limits.most <= loader.samples:
        raise ValueError(
            f"most_batch is the loader's batch_size, {limits.initial}, to the samples of the data "
            f"set, {loader.samples}; not {limits.most}"
        )


def _differs(measured: list[MeasuredStep], fitted: list[MeasuredStep]) -> bool:
    """Whether something is new, or has changed by more than a little."""
    if len(measured) != len(fitted):
        return True
    for one, old in zip(measured, fitted):  # in the same order
        if (one.nodes, one.gpus, one.part) != (old.nodes, old.gpus, old.part):
            return True
        if abs(one.seconds / old.seconds - 1) > _MOVED:
            return True
    return False
