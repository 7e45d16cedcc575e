# SPDX-License-Identifier: Apache-2.0
"""Ranks that are forked from a process which has imported torch already: the import is nearly all that a short
training costs. They end without what the interpreter does at its exit."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from pathlib import Path

from conftest import TIMEOUT, variables_of_ranks

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["torch.distributed", "torch.nn.parallel", "trainyard.train"])


def run_rank(script: Path, words: tuple[str, ...], variables: dict[str, str], output: Path) -> None:
    """As `python script words > output.out 2> output.err` with these variables alone."""
    os.environ.clear()
    os.environ.update(variables)
    for descriptor, kind in ((1, "out"), (2, "err")):
        file = os.open(f"{output}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
    sys.argv = [str(script), *words]
    runpy.run_path(str(script), run_name="__main__")


def run_ranks(script: Path, world: int, output: Path, *words: str) -> list[str]:
    """What each rank has printed. All must have exit status 0. `output`: a path whose names with suffixes are free."""
    outputs = [Path(f"{output}.{rank}") for rank in range(world)]
    processes = [
        FORKED.Process(target=run_rank, args=(script, words, variables, of_rank))
        for variables, of_rank in zip(variables_of_ranks(world), outputs)
    ]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(TIMEOUT)
    finally:
        for process in processes:
            process.kill()
    codes = [process.exitcode for process in processes]
    errors = [Path(f"{path}.err").read_text(encoding="utf-8") for path in outputs]
    assert codes == [0] * world, f"exit codes {codes}: {errors}"
    return [Path(f"{path}.out").read_text(encoding="utf-8") for path in outputs]
