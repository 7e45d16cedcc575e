# SPDX-License-Identifier: Apache-2.0
"""How much a training gains by GPUs and by the size of its batch: its goodput, which is throughput
times statistical efficiency (Pollux, OSDI'21, section 3).

Pure functions of a few numbers, the same as those by which the policy `pollux` divides GPUs
(docs/policies/pollux.md), so that the training and the policy expect the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_CANDIDATES = 50  # batches that are compared (4.1)
_NOTHING = 1e-8  # what takes no time, or is rounded away


@dataclass(frozen=True)
class StepTimes:
    """How long an iteration takes on n nodes and k GPUs (3.2). Seconds, all > 0; gamma 1 to 10.

    alpha_compute, beta_compute: of a forward and backward pass over a GPU's part of the batch, and
    more for each sample; alpha_network, beta_network: of averaging the gradients of two GPUs on
    several nodes, and more for each further GPU; alpha_node, beta_node: the same within a node.
    gamma: 1 where neither hides the other, large where the shorter one is hidden.
    """

    alpha_compute: float
    beta_compute: float
    alpha_network: float
    beta_network: float
    alpha_node: float
    beta_node: float
    gamma: float

    def compute(self, part: float) -> float:
        """Seconds of a pass over `part` samples on one GPU, without averaging gradients."""
        return self.alpha_compute + self.beta_compute * part

    def network(self, nodes: int, gpus: int) -> float:
        """Seconds of averaging gradients; next to nothing on one GPU."""
        beyond = max(gpus - 2, _NOTHING)
        if nodes > 1:
            return self.alpha_network + self.beta_network * beyond
        if gpus > 1:
            return self.alpha_node + self.beta_node * beyond
        return _NOTHING + _NOTHING * beyond

    def iteration(self, nodes: int, gpus: int, part: float) -> float:
        """Seconds of a pass that ends with averaging."""
        one, other = self.compute(part), self.network(nodes, gpus)
        larger, smaller = max(one, other), min(one, other)
        # (a^gamma + b^gamma)^(1/gamma), without leaving the range of numbers
        return float(larger * (1 + (smaller / larger) ** self.gamma) ** (1 / self.gamma))


@dataclass(frozen=True)
class GradientNoise:
    """Of the gradient's estimate with the initial batch (3.1): the squared length of the true
    gradient and the variance of the estimate (the trace of its covariance), both >= 0."""

    square: float = 0.0
    variance: float = 0.0

    def gain(self, scale: float) -> float:
        """Progress of an iteration with `scale` times the initial batch, in iterations with the
        initial one: from 1 to `scale` for scale >= 1. REQUIRES: scale > 0."""
        below = self.variance / scale + self.square
        return (self.variance + self.square) / below if below > 0 else 1.0


@dataclass(frozen=True)
class BatchLimits:
    """What batches a training may use, in samples: `initial` to `most` of all GPUs together, in
    passes over `least_part` to `most_part` on each GPU."""

    initial: int
    most: int
    least_part: int
    most_part: int


@dataclass(frozen=True)
class Split:
    """How a batch is done: `part` samples on each GPU in each of `accumulated` + 1 passes, of which
    the last one averages the gradients."""

    part: int
    accumulated: int = 0

    def samples(self, gpus: int) -> int:
        """Of the batch."""
        return gpus * self.part * (self.accumulated + 1)


def split_for(target: float, gpus: int, limits: BatchLimits) -> Split:
    """A batch of about `target` samples, rounded up to whole parts, in as few passes as the largest
    part allows. One GPU takes two passes at least for more than the initial batch, so that it can
    tell the noise of its gradient. May be above the limits. REQUIRES: gpus >= 1.
    """
    part = target / gpus
    accumulated = math.ceil(part / limits.most_part - _NOTHING) - 1
    if gpus == 1 and part > limits.initial + _NOTHING:
        accumulated = max(accumulated, 1)
    accumulated = max(accumulated, 0)
    return Split(math.ceil(part / (accumulated + 1) - _NOTHING), accumulated)


def first_split(gpus: int, limits: BatchLimits) -> Split:
    """As long as nothing is known: the initial batch, or the least that so many GPUs do."""
    return within(split_for(max(limits.initial, limits.least_part * gpus), gpus, limits), gpus,
                  limits)


def within(split: Split, gpus: int, limits: BatchLimits) -> Split:
    """With parts so small that the batch is not above the limits, if that is possible."""
    most = max(limits.most // (gpus * (split.accumulated + 1)), 1)
    return Split(max(min(split.part, most), 1), split.accumulated)


@dataclass(frozen=True)
class GoodputModel:
    """What a training knows of itself."""

    times: StepTimes
    noise: GradientNoise
    limits: BatchLimits

    def throughput(self, nodes: int, gpus: int, split: Split) -> float:
        """Samples a second."""
        seconds = split.accumulated * self.times.compute(split.part)
        seconds += self.times.iteration(nodes, gpus, split.part)
        return split.samples(gpus) / seconds

    def efficiency(self, samples: int) -> float:
        """Progress by a sample of a batch of so many, measured by one of the initial batch."""
        scale = samples / self.limits.initial
        return self.noise.gain(scale) / scale

    def goodput(self, nodes: int, gpus: int, split: Split) -> float:
        """Samples of the initial batch's worth a second."""
        return self.throughput(nodes, gpus, split) * self.efficiency(split.samples(gpus))

    def best(self, nodes: int, gpus: int) -> tuple[float, Split]:
        """The best of 50 batches in geometric progression over the limits, and its goodput; the
        first of equal ones. Goodput 0: with so many GPUs no batch is within the limits; then the
        split is the first one. REQUIRES: 1 <= nodes <= gpus.
        """
        limits = self.limits
        least = max(limits.initial, limits.least_part * gpus)
        first = math.log10(least)
        step = (math.log10(limits.most) - first) / (_CANDIDATES - 1)
        best = (0.0, first_split(gpus, limits))
        for place in range(_CANDIDATES):
            target = float(10 ** (place * step + first))
            if place in (0, _CANDIDATES - 1):
                target = least if place == 0 else limits.most
            split = split_for(target, gpus, limits)
            if limits.least_part <= split.part <= limits.most_part:
                value = self.goodput(nodes, gpus, split)
                if value > best[0]:
                    best = (value, split)
        return best

    def metrics(self, tried_gpus: int) -> dict[str, float]:
        """What is reported, by name (docs/policies/pollux.md). `tried_gpus`: the most GPUs that the
        times were measured on. The most that it can use are not stated (0)."""
        limits, noise = self.limits, self.noise
        values = {name: getattr(self.times, name) for name in StepTimes.__dataclass_fields__}
        values |= {"square": noise.square, "variance": noise.variance}
        values |= {"initial_batch": limits.initial, "most_batch": limits.most}
        values |= {"least_part": limits.least_part, "most_part": limits.most_part}
        values |= {"tried_gpus": tried_gpus, "most_gpus": 0}
        return {f"goodput.{name}": float(value) for name, value in values.items()}
