# SPDX-License-Identifier: Apache-2.0
"""What iterations have taken, by device, allocation and batch."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Any, Deque, Mapping

from .goodput import Split
from .step_times import MeasuredStep

_KEPT = 50  # of the last iterations
_ENOUGH = 10  # iterations before which a median is not believed


@dataclass(frozen=True)
class Place:
    """On what a training runs: kind of device, nodes, GPUs (one for each rank)."""

    device: str
    nodes: int
    gpus: int


@dataclass(frozen=True)
class IterationTimes:
    """Seconds of a whole iteration, and of all its passes without averaging gradients."""

    iteration: float
    passes: float


class StepLog:
    """Medians of the last iterations: an iteration in which a checkpoint is written, or another
    process disturbs this one, changes nothing."""

    def __init__(self) -> None:
        self._times: dict[tuple[Place, Split], Deque[IterationTimes]] = {}

    def add(self, place: Place, split: Split, times: IterationTimes) -> bool:
        """Whether by this one enough is known of something of which too little was."""
        kept = self._times.setdefault((place, split), deque(maxlen=_KEPT))
        kept.append(times)
        return len(kept) == _ENOUGH

    def measured(self, device: str) -> list[MeasuredStep]:
        """What is known of the device.

        What an iteration takes beside its passes (averaging, loading, the optimizer's step) is part
        of its last pass.
        """
        steps = []
        for (place, split), kept in self._times.items():
            if place.device != device or len(kept) < _ENOUGH:
                continue
            iteration = statistics.median(one.iteration for one in kept)
            passes = min(statistics.median(one.passes for one in kept), iteration)
            compute = passes / (split.accumulated + 1)
            last = iteration - split.accumulated * compute
            steps.append(MeasuredStep(place.nodes, place.gpus, split.part, last, compute))
        return steps

    @property
    def largest(self) -> tuple[int, int]:
        """Samples of the largest part and of the largest batch of which enough is known, or 0."""
        known = [key for key, kept in self._times.items() if len(kept) >= _ENOUGH]
        return (
            max((split.part for _, split in known), default=0),
            max((split.samples(place.gpus) for place, split in known), default=0),
        )

    def state_dict(self) -> dict[str, Any]:
        """All of it, in plain types."""
        return {
            "times": [
                [place.device, place.nodes, place.gpus, split.part, split.accumulated,
                 [[one.iteration, one.passes] for one in kept]]
                for (place, split), kept in self._times.items()
            ]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from there."""
        self._times.clear()
        for device, nodes, gpus, part, accumulated, kept in state["times"]:
            key = (Place(device, nodes, gpus), Split(part, accumulated))
            self._times[key] = deque((IterationTimes(*one) for one in kept), maxlen=_KEPT)
