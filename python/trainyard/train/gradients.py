# SPDX-License-Identifier: Apache-2.0
"""The squared lengths of gradients, on one process and on the ranks of DistributedDataParallel.

Where the optimizer divides each component by its usual size (Adam), so is the gradient measured:
what matters is the noise of the step that is taken (Pollux, OSDI'21, section 3.1).
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Optional

from .errors import WorldSizeError
from .gradient_noise import Squares

_STEPS_OF_DIVISOR = 10


class Preconditioner:
    """By what an optimizer divides the components of a gradient, as far as it is known how."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._groups = {
            parameter: group for group in optimizer.param_groups for parameter in group["params"]
        }

    @property
    def is_ready(self) -> bool:
        """False: the optimizer divides, but by the mean of too few steps: a component that was
        small in all of these would seem huge."""
        if "betas" not in self._optimizer.defaults:
            return True
        states = self._optimizer.state.values()
        return max((float(one.get("step", 0)) for one in states), default=0) >= _STEPS_OF_DIVISOR

    def square(self, pairs: Iterable[tuple[Any, Any]]) -> Any:
        """The squared length of a gradient (parameter, its gradient); a tensor, or 0."""
        total: Any = 0.0
        for parameter, gradient in pairs:
            divisor = self._divisor(parameter)
            if divisor is not None:
                gradient = gradient / divisor
            total = total + gradient.detach().float().pow(2).sum()
        return total

    def _divisor(self, parameter: Any) -> Any:
        state = self._optimizer.state.get(parameter)
        if not state or "exp_avg_sq" not in state:
            return None
        group = self._groups.get(parameter, self._optimizer.defaults)
        corrected = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
        return corrected.sqrt().add_(group["eps"]).view_as(parameter)


class AloneGradients:
    """On one process: the passes of an iteration are the estimates, or, where there is one pass
    only, this iteration's gradient and the one before, between which little has changed."""

    def __init__(self, optimizer: Any) -> None:
        self._preconditioner = Preconditioner(optimizer)
        self._parameters = [
            parameter for group in optimizer.param_groups for parameter in group["params"]
            if parameter.requires_grad
        ]
        self._before: list[Optional[Any]] = []  # sums up to the pass, or the last gradient
        self._last: Optional[tuple[int, list[Optional[Any]]]] = None  # samples, gradient
        self._of_passes: Any = 0.0

    def begin(self) -> None:
        """Before the first pass."""
        self._before = [None] * len(self._parameters)
        self._of_passes = 0.0

    def end_pass(self, is_last: bool, passes: int) -> None:
        """After the pass's backward()."""
        if passes == 1:
            return
        self._of_passes = self._of_passes + self._preconditioner.square(self._since(self._before))
        if not is_last:
            self._before = self._copied()

    def squares(self, passes: int, samples: int) -> Optional[Squares]:
        """Of an iteration of so many passes over equal parts of so many samples; None: they are
        not known."""
        if not self._preconditioner.is_ready:
            return None
        if passes > 1:
            self._last = None
            nothing: list[Optional[Any]] = [None] * len(self._parameters)
            of_mean = float(self._preconditioner.square(self._since(nothing)))
            # Each pass adds its part of the mean, 1 / passes of its own gradient.
            return Squares(passes * float(self._of_passes), of_mean, passes, samples)
        last, self._last = self._last, (samples, self._copied())
        if last is None or last[0] != samples:
            return None
        nothing = [None] * len(self._parameters)
        now = float(self._preconditioner.square(self._since(nothing)))
        pairs = [(one, old) for one, old in zip(self._parameters, last[1]) if old is not None]
        before = float(self._preconditioner.square(pairs))
        apart = float(self._preconditioner.square(self._since(last[1])))
        # |(a + b) / 2|^2 = (|a|^2 + |b|^2) / 2 - |a - b|^2 / 4
        each = (now + before) / 2
        return Squares(each, each - apart / 4, 2, samples)

    def forget(self) -> None:
        """What comes next is not to be compared with what was."""
        self._last = None

    def _copied(self) -> list[Optional[Any]]:
        return [None if one.grad is None else one.grad.detach().clone() for one in self._parameters]

    def _since(self, before: list[Optional[Any]]) -> Iterable[tuple[Any, Any]]:
        for parameter, old in zip(self._parameters, before):
            if parameter.grad is not None:
                yield parameter, parameter.grad if old is None else parameter.grad - old


class RankGradients:
    """On several ranks: the gradient of each rank, before DDP averages them, is an estimate."""

    def __init__(self, model: Any, optimizer: Any, ready: Callable[[], None]) -> None:
        """`ready` is called when all gradients of this rank are there. Raises WorldSizeError where
        the model is not in DistributedDataParallel."""
        if not hasattr(model, "register_comm_hook"):
            raise WorldSizeError(
                "an AdaptiveBatch of several ranks needs the model in DistributedDataParallel, "
                f"not a {type(model).__name__}"
            )
        self._preconditioner = Preconditioner(optimizer)
        self._parameters = [
            parameter for group in optimizer.param_groups for parameter in group["params"]
        ]
        self._ready = ready
        self._own: Any = 0.0
        group = model.process_group
        # A lambda, since DDP compares the annotations of a function with its own types.
        model.register_comm_hook(group, lambda state, bucket: self._average(state, bucket))

    def begin(self) -> None:
        """Before the first pass."""
        self._own = 0.0

    def _average(self, group: Any, bucket: Any) -> Any:
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        pairs = zip(bucket.parameters(), bucket.gradients())
        self._own = self._own + self._preconditioner.square(pairs)
        if bucket.is_last():
            self._ready()
        return allreduce_hook(group, bucket)

    def lengths(self) -> tuple[float, float]:
        """Squared: of this rank's gradient, and of the mean over the ranks; NaN: not known."""
        if not self._preconditioner.is_ready:
            return math.nan, math.nan
        pairs = [(one, one.grad) for one in self._parameters if one.grad is not None]
        return float(self._own), float(self._preconditioner.square(pairs))
