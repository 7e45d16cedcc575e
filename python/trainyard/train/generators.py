# SPDX-License-Identifier: Apache-2.0
"""The random generators of a rank: Python's, and torch's and numpy's where they are imported."""

from __future__ import annotations

import random
import sys
from typing import Any

from .order import seed_of


def saved() -> dict[str, Any]:
    """Their states, in plain types and torch tensors."""
    version, internal, gauss = random.getstate()
    states: dict[str, Any] = {"random": [version, list(internal), gauss]}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state()
    if numpy is not None:
        name, keys, place, has_gauss, cached = numpy.random.get_state()
        states["numpy"] = [name, keys.tolist(), place, has_gauss, cached]
    return states


def restore(states: dict[str, Any]) -> None:
    """Sets the generators that have a state, if they are imported here, too."""
    version, internal, gauss = states["random"]
    random.setstate((version, tuple(internal), gauss))
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and "torch" in states:
        torch.set_rng_state(states["torch"])
        if "cuda" in states and torch.cuda.is_available():
            torch.cuda.set_rng_state(states["cuda"])
    if numpy is not None and "numpy" in states:
        name, keys, place, has_gauss, cached = states["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype="uint32"), place, has_gauss, cached))


def seed_anew(iterations: int, rank: int) -> None:
    """Seeds them for a rank that has no saved state, as the world size was another one."""
    seed = seed_of(iterations, rank)
    random.seed(seed)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        torch.manual_seed(seed)
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)
