# SPDX-License-Identifier: Apache-2.0
"""Figures with the time since the start of the test, and what they were measured on."""

import subprocess
import time
from dataclasses import dataclass, field

from train_test.figures import Report


@dataclass
class Timed(Report):
    began: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def say(self, text: str) -> None:
        print(f"[{self.elapsed:6.1f} s] {text}", flush=True)


def hardware(device: str) -> str | None:
    """What the test runs on; none: there is no such device."""
    try:
        import torch
    except ImportError:
        return None
    if device == "cpu":
        return f"CPU, torch {torch.__version__}"
    if not torch.cuda.is_available():
        return None
    return f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, CUDA {torch.version.cuda}"


def gpu_memory() -> int | None:
    """MiB that are in use on all GPUs together; none: nvidia-smi does not tell."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=20, check=True).stdout
        return sum(int(line) for line in said.split())
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
