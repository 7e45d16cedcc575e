# SPDX-License-Identifier: Apache-2.0
"""Trainings in processes of their own that begin with torch imported, which takes most of a short one."""

import multiprocessing
import os
import runpy
import subprocess
import sys
from pathlib import Path

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "torch", "torch.distributed", "torch.utils.data"])


def _begin(arguments: list[str], environment: dict[str, str], folder: Path) -> None:
    os.chdir(folder)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    sys.path[:0] = [str(Path(arguments[0]).parent)]
    sys.dont_write_bytecode = True
    runpy.run_path(arguments[0], run_name="__main__")


def run(arguments: list[str], environment: dict[str, str], folder: Path,
        timeout: float) -> "subprocess.CompletedProcess[str]":
    """The script (by its path) with its arguments, in the folder."""
    process = PROCESSES.Process(target=_begin, args=(arguments, environment, folder))
    process.start()
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        raise subprocess.TimeoutExpired(arguments, timeout)
    out, errors = (path.read_text() if (path := folder / name).exists() else ""
                   for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(arguments, process.exitcode, out, errors)
