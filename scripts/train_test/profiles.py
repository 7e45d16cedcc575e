# SPDX-License-Identifier: Apache-2.0
"""What `trainyard profile` says of a workload."""

import json
import subprocess
from pathlib import Path
from typing import Any

from train_test.cluster import PYTHON, SOURCE, ExperimentError
from train_test.context import Context


def workload(*arguments: str) -> list[str]:
    """The command of synthetic.py; its words may have placeholders."""
    return [PYTHON, "-B", str(SOURCE / "workloads/synthetic.py"), "--device", "cpu", *arguments]


def profile(context: Context, verb: str, out: Path, model: str, options: dict[str, Any],
            command: list[str]) -> Any:
    """The JSON answer; the profile lies in `out`."""
    context.folder.mkdir(parents=True, exist_ok=True)
    words = [word for name, value in options.items()
             for word in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run(
        [str(context.trainyard), "profile", verb, "--model", model, "--out", str(out), "--json",
         *words, "--", *command], capture_output=True, text=True, cwd=context.folder)
    if done.returncode != 0:
        raise ExperimentError(f"trainyard profile {verb}: {done.stderr.strip()}")
    return json.loads(done.stdout)
