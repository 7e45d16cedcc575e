# SPDX-License-Identifier: Apache-2.0
"""What all ranks do together, over torch.distributed where the script has initialised it.

torch is never imported here: a script that has not imported it has one rank.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Sequence

from .errors import WorldSizeError

_DROPPED = 0.05  # seconds within which gloo's threads have dropped their tensors
_kept: list[Any] = []
_control_groups: list[tuple[Any, Any]] = []  # a default group and the one for the library's words


def _distributed() -> Any:
    """torch.distributed where a process group is initialised, else None."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def is_initialized() -> bool:
    """Whether torch.distributed has a process group."""
    return _distributed() is not None


def rank() -> int:
    """REQUIRES: is_initialized()."""
    return int(_distributed().get_rank())


def world_size() -> int:
    """REQUIRES: is_initialized()."""
    return int(_distributed().get_world_size())


def require(world: int, what: str) -> None:
    """Raises WorldSizeError where there are several ranks without a process group."""
    if world > 1 and not is_initialized():
        raise WorldSizeError(
            f"{what} needs all {world} workers, but torch.distributed is not initialised: call "
            "torch.distributed.init_process_group() first"
        )


def maxima(values: Sequence[float]) -> list[float]:
    """The greatest of each value over all ranks; the same on all. Collective."""
    dist = _distributed()
    if dist is None or dist.get_world_size() == 1:
        return list(values)
    import torch

    tensor = torch.tensor(list(values), dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=_group(dist))
    return [float(value) for value in tensor.tolist()]


def rows(values: Sequence[float]) -> list[list[float]]:
    """The numbers of each rank, by rank; the same on all, bit by bit. Collective."""
    dist = _distributed()
    if dist is None or dist.get_world_size() == 1:
        return [list(values)]
    import torch

    mine = torch.tensor(list(values), dtype=torch.float64)
    tensors = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(tensors, mine, group=_group(dist))
    return [[float(value) for value in tensor.tolist()] for tensor in tensors]


def leave_together() -> None:
    """The last word before the ranks leave: nobody goes on before all have come here. Collective.

    gloo's threads drop the tensors of a collective operation a moment after its end, and need
    Python's lock for that. A script that destroys its process group in this moment waits for them
    for ever, with the lock (seen with torch 1.13). So they are given time, and the tensor of the
    last operation is kept.
    """
    dist = _distributed()
    if dist is None or dist.get_world_size() == 1:
        return
    import torch

    _kept[:] = [torch.zeros(1)]
    dist.all_reduce(_kept[0], group=_group(dist))
    time.sleep(_DROPPED)


def gathered(value: Any) -> list[Any]:
    """The values of all ranks, by rank. Collective; values must be picklable."""
    dist = _distributed()
    if dist is None or dist.get_world_size() == 1:
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value, group=_group(dist))
    return values


def from_first(value: Any) -> Any:
    """Rank 0's value, on all ranks. Collective; the value must be picklable."""
    dist = _distributed()
    if dist is None or dist.get_world_size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0, group=_group(dist))
    return values[0]


def _group(dist: Any) -> Any:
    """The group for the library's own words: on the CPU, so that no GPU has to be waited for.

    None, the default group, where that is gloo's; else a gloo group, made at the first call.
    """
    if dist.get_backend() == "gloo":
        return None
    world = dist.group.WORLD
    for default, control in _control_groups:
        if default is world:
            return control
    _control_groups[:] = [(world, dist.new_group(backend="gloo"))]
    return _control_groups[0][1]
