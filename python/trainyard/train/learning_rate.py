# SPDX-License-Identifier: Apache-2.0
"""The learning rate after a resize that changes the global batch."""

from __future__ import annotations

from typing import Any

_RATES = ("lr", "initial_lr", "max_lr", "min_lr")


def scale(optimizer: Any, scheduler: Any, factor: float) -> None:
    """Multiplies the rates of the optimizer's groups and the scheduler's bases by `factor`.

    The linear rule: the rate goes with the global batch. Either may be None.
    """
    if factor == 1.0:
        return
    if optimizer is not None:
        for group in optimizer.param_groups:
            for name in _RATES:
                if name in group:
                    group[name] = group[name] * factor
    _scale_scheduler(scheduler, factor)


def _scale_scheduler(scheduler: Any, factor: float) -> None:
    for name in ("base_lrs", "_last_lr"):
        rates = getattr(scheduler, name, None)
        if isinstance(rates, list):
            setattr(scheduler, name, [rate * factor for rate in rates])
    for inner in getattr(scheduler, "_schedulers", ()):
        _scale_scheduler(inner, factor)
