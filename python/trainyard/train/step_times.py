# SPDX-License-Identifier: Apache-2.0
"""The step times of a training from what it has measured of itself (Pollux, OSDI'21, section 4.1).

The same error and the same priors as src/profile/goodput/step_times_fit.h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional, Sequence

from .goodput import StepTimes

_FREE = 1e-8  # seconds of what costs nothing
_GAMMA_PRIOR = 1e-3
_GROWTH_PRIOR = 1e-2
_SLOWER_NETWORK = 1.1
_SMOOTH = 1e-12  # under the roots, which have no slope at 0
_EVALUATIONS = 80  # of one search, at most
_NAMES = tuple(StepTimes.__dataclass_fields__)


@dataclass(frozen=True)
class MeasuredStep:
    """One allocation and batch on which the training has run.

    part: samples of a GPU in a pass; seconds: of a pass that averages gradients, > 0; compute: of
    one that does not, > 0.
    """

    nodes: int
    gpus: int
    part: int
    seconds: float
    compute: float


def error_of(times: StepTimes, measured: Sequence[MeasuredStep]) -> float:
    """How far the model is from the measurements: the root mean square of the logarithm of
    predicted over measured times, of passes with and without averaging, plus the priors: gamma
    near 1, and communication that grows slowly with the GPUs. REQUIRES: not empty."""

    def root(logs: list[float]) -> float:
        return math.sqrt(sum(log * log for log in logs) / len(logs))

    found = root([math.log(times.compute(one.part) / one.compute) for one in measured])
    found += root([
        math.log(times.iteration(one.nodes, one.gpus, one.part) / one.seconds) for one in measured
    ])
    growths = (times.beta_network / times.alpha_network, times.beta_node / times.alpha_node)
    found += _GAMMA_PRIOR * (times.gamma - 1) ** 2
    return found + _GROWTH_PRIOR * sum(growth * growth for growth in growths)


def fit(measured: Sequence[MeasuredStep]) -> StepTimes:
    """The best fit that searches from a few fixed points find.

    What nothing is known of costs nothing, so that the training is tried on more GPUs: averaging
    between nodes as long as it has run on one node only (at least a tenth more than within a node,
    once that is known), both for one GPU, and the growth with the number of GPUs up to two. Of one
    size of a part, half of the time counts as fixed. Needs torch; a tenth of a second.
    REQUIRES: `measured` is not empty.
    """
    fixed = _fixed_by(measured)
    times: Optional[StepTimes] = None
    for start in _starts_for(measured):
        found = _search(start, fixed, measured)
        if times is None or error_of(found, measured) < error_of(times, measured):
            times = found
    assert times is not None
    # At a kink the search stalls; begun anew, without what it remembers of slopes, it goes on.
    again = _search([getattr(times, name) for name in _NAMES], fixed, measured)
    times = min(times, again, key=lambda each: error_of(each, measured))
    if all(one.nodes == 1 for one in measured):
        return StepTimes(**{
            **times.__dict__,
            "alpha_network": max(times.alpha_network, _SLOWER_NETWORK * times.alpha_node),
            "beta_network": max(times.beta_network, _SLOWER_NETWORK * times.beta_node),
        })
    return times


def _fixed_by(measured: Sequence[MeasuredStep]) -> dict[str, float]:
    """Parameters of which the measurements say nothing, by name."""
    fixed: dict[str, float] = {}
    if len({one.part for one in measured}) == 1:
        fixed["alpha_compute"] = sum(one.compute for one in measured) / len(measured) / 2
    if all(one.nodes == 1 for one in measured):
        fixed |= {"alpha_network": _FREE, "beta_network": _FREE}
    if not any(one.nodes == 1 and one.gpus > 1 for one in measured):
        fixed |= {"alpha_node": _FREE, "beta_node": _FREE}
    if all(one.gpus <= 2 for one in measured):
        fixed |= {"beta_network": _FREE, "beta_node": _FREE}
    return fixed


def _starts_for(measured: Sequence[MeasuredStep]) -> list[list[float]]:
    """The line through the fewest and the most samples of a part, and averaging as the rest of a
    step, with several powers; and the published start."""
    least = min(measured, key=lambda one: one.part)
    most = max(measured, key=lambda one: one.part)
    if most.part > least.part:
        slope = max((most.compute - least.compute) / (most.part - least.part), 1e-6)
    else:
        slope = least.compute / 2 / least.part
    base = max(least.compute - slope * least.part, least.compute / 20)
    network, node = 1e-4, 1e-4
    for one in measured:
        rest = one.seconds - one.compute
        network = max(network, rest) if one.nodes > 1 else network
        node = max(node, rest) if one.nodes == 1 else node
    starts = [[0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 1.001]]
    for gamma in (1.05, 2.0, 5.0):
        starts.append([base, slope, network / 2, network / 20, node / 2, node / 20, gamma])
    return starts


def _search(
    start: list[float], fixed: dict[str, float], measured: Sequence[MeasuredStep]
) -> StepTimes:
    """A minimum near the start, by L-BFGS over the logarithms of the parameters."""
    import torch

    begin = [
        math.log(fixed.get(name, max(value, _FREE))) for name, value in zip(_NAMES, start)
    ]
    free = torch.tensor([name not in fixed for name in _NAMES])
    constant = torch.tensor(begin, dtype=torch.float64)
    at = constant.clone().requires_grad_()
    columns = torch.tensor(
        [[one.nodes > 1, one.gpus, one.part, one.seconds, one.compute] for one in measured],
        dtype=torch.float64,
    ).T
    best: list[Any] = [math.inf, constant.exp()]
    optimizer = torch.optim.LBFGS(
        [at], max_iter=_EVALUATIONS, max_eval=_EVALUATIONS, tolerance_grad=1e-7,
        tolerance_change=1e-11, line_search_fn="strong_wolfe",
    )

    def closure() -> Any:
        optimizer.zero_grad()
        logs = torch.where(free, at, constant)
        bounded = [logs[:6].clamp(math.log(_FREE), 50.0), logs[6:].clamp(0.0, math.log(10.0))]
        parameters = torch.cat(bounded).exp()
        value = _error_at(torch, parameters, columns)
        if float(value) < best[0]:
            best[:] = [float(value), parameters.detach().clone()]
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(closure)
    return StepTimes(*(float(value) for value in best[1]))


def _error_at(torch: Any, p: Any, columns: Any) -> Any:
    """`error_of` as a tensor with a slope. p: [7]; columns: [5, rows]."""
    several, gpus, part, seconds, compute_seconds = columns
    beyond = (gpus - 2).clamp(min=_FREE)
    compute = p[0] + p[1] * part
    alone = torch.full_like(gpus, _FREE) + _FREE * beyond
    network = torch.where(
        several > 0, p[2] + p[3] * beyond, torch.where(gpus > 1, p[4] + p[5] * beyond, alone)
    )
    larger, smaller = torch.maximum(compute, network), torch.minimum(compute, network)
    ratio = torch.exp(p[6] * torch.log(smaller / larger))
    step = torch.log(larger) + torch.log1p(ratio) / p[6]

    def root(logs: Any) -> Any:
        return torch.sqrt((logs * logs).mean() + _SMOOTH)

    error = root(torch.log(compute / compute_seconds)) + root(step - torch.log(seconds))
    growth = (p[3] / p[2]) ** 2 + (p[5] / p[4]) ** 2
    return error + _GAMMA_PRIOR * (p[6] - 1) ** 2 + _GROWTH_PRIOR * growth
