# SPDX-License-Identifier: Apache-2.0
"""The noise of a gradient, from several estimates of it (Pollux, OSDI'21, section 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping

from .goodput import GradientNoise

_ENOUGH = 30  # measurements before which the mean is not believed


@dataclass(frozen=True)
class Squares:
    """Of `count` estimates of the same gradient, each the mean over `samples` samples: the mean of
    their squared lengths, and the squared length of their mean. count >= 2."""

    of_each: float
    of_mean: float
    count: int
    samples: int

    def noise(self, initial: int) -> GradientNoise:
        """Unbiased, and so possibly negative; for a batch of `initial` samples.

        E of_each = square + v and E of_mean = square + v / count, v the variance of one estimate,
        which goes with 1 / samples.
        """
        square = (self.count * self.of_mean - self.of_each) / (self.count - 1)
        variance = (self.of_each - self.of_mean) * self.count / (self.count - 1)
        return GradientNoise(square, variance * self.samples / initial)

    @property
    def is_finite(self) -> bool:
        """False: a gradient has overflowed."""
        return math.isfinite(self.of_each) and math.isfinite(self.of_mean)


class NoiseMean:
    """The mean of what was measured, in which older measurements count less and less."""

    def __init__(self, memory: float) -> None:
        """`memory`: initial batches after which a measurement counts 1/e of what it did."""
        self._memory = memory
        self._square = 0.0
        self._variance = 0.0
        self._weight = 0.0  # of all measurements; towards 1
        self._measured = 0

    def add(self, noise: GradientNoise, scale: float) -> None:
        """`scale`: of the batch that it was measured with, in initial batches."""
        kept = math.exp(-scale / self._memory)
        self._square = kept * self._square + (1 - kept) * noise.square
        self._variance = kept * self._variance + (1 - kept) * noise.variance
        self._weight = kept * self._weight + (1 - kept)
        self._measured += 1

    @property
    def is_known(self) -> bool:
        """Whether enough has been measured to go by it."""
        return self._measured >= _ENOUGH

    @property
    def noise(self) -> GradientNoise:
        """The mean; nothing is negative. Before it is known 0 and 0, by which no batch is worth
        more than the initial one."""
        if not self.is_known:
            return GradientNoise()
        return GradientNoise(
            max(self._square / self._weight, 0.0), max(self._variance / self._weight, 0.0)
        )

    def state_dict(self) -> dict[str, float]:
        """The sums."""
        return {"square": self._square, "variance": self._variance, "weight": self._weight,
                "measured": self._measured}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Goes on from there."""
        self._square, self._variance = float(state["square"]), float(state["variance"])
        self._weight, self._measured = float(state["weight"]), int(state["measured"])
