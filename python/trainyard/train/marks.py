# SPDX-License-Identifier: Apache-2.0
"""Moments of an iteration, by the clock or, where a GPU computes, in its own order of work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional


@dataclass(frozen=True)
class Mark:
    """A moment. event: of a GPU, which comes there later than the process that gives it work."""

    seconds: float
    event: Optional[Any] = None


class Marks:
    """Takes times where the optimizer's parameters are."""

    def __init__(self, optimizer: Any, clock: Callable[[], float]) -> None:
        self.clock = clock
        first = next(one for group in optimizer.param_groups for one in group["params"])
        self._is_gpu = first.device.type == "cuda"
        self.device = "cpu"  # kind of device, as measurements tell them apart
        if self._is_gpu:
            import torch

            self.device = str(torch.cuda.get_device_name(first.device))

    def now(self) -> Mark:
        """This moment; does not wait for the GPU."""
        if not self._is_gpu:
            return Mark(self.clock())
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return Mark(self.clock(), event)

    def between(self, earlier: Mark, later: Mark) -> float:
        """Seconds. Waits for the GPU to come to the later one."""
        if earlier.event is None or later.event is None:
            return later.seconds - earlier.seconds
        later.event.synchronize()
        return float(earlier.event.elapsed_time(later.event)) / 1000
