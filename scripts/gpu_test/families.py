#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""families.py DEVICE ITERATIONS NAME...: trains some families of workloads for a moment, one after the
other in this process, so that torch is imported once. A line of JSON for each."""

import contextlib
import importlib
import io
import json
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "workloads"))

FAMILIES = {
    "resnet18": ["image_classification", "--arch", "resnet18"],
    "vgg16": ["image_classification", "--arch", "vgg16"],
    "mobilenet": ["image_classification", "--arch", "mobilenet"],
    "bert": ["transformer", "--arch", "bert"],
    "gpt2": ["transformer", "--arch", "gpt2"],
    "lstm": ["lstm"],
    "speech": ["speech"],
    "ncf": ["recommendation"],
    "dqn": ["reinforcement"],
    # Last: TF32 stays on in the process.
    "gpt2, bf16 and TF32": ["transformer", "--arch", "gpt2", "--amp", "bf16", "--tf32"],
}


def train(name: str, device: str, iterations: int, folder: Path) -> dict[str, object]:
    module, *arguments = FAMILIES[name]
    losses = folder / "losses.json"
    with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
        importlib.import_module(module).main([
            *arguments, "--device", device, "--workers", "0", "--max-iterations", str(iterations),
            "--losses", str(losses), "--job-name", "it", "--checkpoints", str(folder)])
    seconds = float((folder / "PERF_it.txt").read_text().split()[0])
    values = json.loads(losses.read_text())
    return {"name": name, "seconds": seconds, "iterations": len(values),
            "finite": all(math.isfinite(value) for value in values)}


def main() -> None:
    device, iterations, *names = sys.argv[1:]
    for name in names or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    found = train(name, device, int(iterations), Path(folder))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the others are tried all the same
                found = {"name": name, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
