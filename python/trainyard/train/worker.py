# SPDX-License-Identifier: Apache-2.0
"""A loader worker: a process that loads what it is told, until its trainer ends it or dies."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from array import array
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from .samples import Source

READY = -1  # number of the first answer
_LOOK = 1.0  # seconds between looks whether the trainer is still there


@dataclass(frozen=True)
class Task:
    """Samples to load. `indices`: array("q") as bytes. `collated`: as one batch, else a list."""

    number: int
    epoch: int
    indices: bytes
    collated: bool


@dataclass(frozen=True)
class Failure:
    """Why a task has failed: the exception's traceback as text."""

    text: str


def run(tasks: Connection, results: Connection, source: Source, parent: int) -> None:
    """The worker's main function. Answers are (number, value), in the order of the tasks."""
    # A notice goes to the whole process group; the trainer decides when its workers end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    try:
        _send(results, READY, None)
        while True:
            task = _next(tasks, parent)
            if task is None:
                return
            _answer(results, source, task)
    except (EOFError, OSError):
        return  # the trainer is gone


def _next(tasks: Connection, parent: int) -> "Task | None":
    while not tasks.poll(_LOOK):
        if not _is_there(parent):
            return None
    task: "Task | None" = tasks.recv()
    return task


def _is_there(parent: int) -> bool:
    if os.getppid() == parent:
        return True
    # A forkserver's worker has the server as its parent, and is told of the trainer by a pipe. A
    # forked one has that pipe, too, but so have its siblings: it does not tell whether one is dead.
    trainer = multiprocessing.parent_process()
    by_server = multiprocessing.get_start_method(allow_none=True) == "forkserver"
    return by_server and trainer is not None and trainer.pid == parent and trainer.is_alive()


def _answer(results: Connection, source: Source, task: Task) -> None:
    try:
        indices = array("q")
        indices.frombytes(task.indices)
        if task.collated:
            message = bytes(ForkingPickler.dumps((task.number, source.batch(task.epoch, indices))))
        else:
            # Single samples go by value: each tensor in shared memory would take a descriptor.
            message = pickle.dumps((task.number, source.samples(task.epoch, indices)))
    except Exception:  # noqa: BLE001 - whatever the dataset raises is told to the trainer
        message = pickle.dumps((task.number, Failure(traceback.format_exc())))
    results.send_bytes(message)


def _send(results: Connection, number: int, value: Any) -> None:
    results.send_bytes(pickle.dumps((number, value)))
