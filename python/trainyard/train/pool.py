# SPDX-License-Identifier: Apache-2.0
"""The loader workers of one loader. Their number may change at any time, without a restart."""

from __future__ import annotations

import atexit
import multiprocessing
import multiprocessing.util  # noqa: F401 - its exit function is to run after ours
import os
import pickle
import signal
import sys
import weakref
from array import array
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Optional, Sequence

from . import worker
from .connection import warn
from .errors import LoaderError
from .job import is_imported_by_worker
from .samples import Source

_LARGE = 48 << 10  # bytes of a task that might not fit a pipe beside another one
_PATIENCE = 5.0  # seconds in which a worker ends when it is told to


def start_method() -> str:
    """`fork`, or `spawn` where this process has initialised CUDA or cannot fork."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "spawn"
    return "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"


class _Worker:
    """The trainer's side of one worker."""

    def __init__(self, source: Source, method: str) -> None:
        context: Any = multiprocessing.get_context(method)
        tasks, self.tasks = context.Pipe(duplex=False)
        self.results, results = context.Pipe(duplex=False)
        _parent_ends.update((self.tasks, self.results))
        self.ready = False
        self.retires = False
        self.outstanding: dict[int, bytes] = {}  # the tasks' indices by number
        self.process = context.Process(
            target=worker.run, args=(tasks, results, source, os.getpid()), daemon=True
        )
        if method != "fork":
            resource_tracker.ensure_running()  # its start would let SIGTERM through again
        # A spawned worker ignores SIGTERM only once it has started: until then it is blocked.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            tasks.close()
            results.close()

    @property
    def is_starting(self) -> bool:
        """Whether it has neither told that it is there nor been given anything to do."""
        return not self.ready and not self.outstanding

    def retire(self) -> None:
        """Lets it end once its tasks are done and their answers are here."""
        self.retires = True
        if self.is_starting:
            self.process.kill()  # a spawned one would import the script first, with torch in it
        elif not self.outstanding:
            # Not before: tensors are handed over by the process that has made them.
            self.dismiss()

    def dismiss(self) -> None:
        """Tells it to end."""
        try:
            self.tasks.send(None)
        except OSError:
            pass  # it has ended already

    def close(self) -> None:
        """Ends it, by force where it does not leave in time."""
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.tasks.close()
        self.results.close()


class WorkerPool:
    """Loads tasks in any number of processes; each answer is taken by its task's number."""

    def __init__(self, source: Source, prefetch: int, method: Optional[str] = None) -> None:
        """`prefetch`: tasks of one worker at a time; `method`: None, `fork`, `spawn` or
        `forkserver`. Raises ValueError for another one."""
        if method is not None and method not in multiprocessing.get_all_start_methods():
            raise ValueError(
                f"start_method is one of {', '.join(multiprocessing.get_all_start_methods())}, "
                f"not {method!r}"
            )
        self._source = source
        self._prefetch = prefetch
        self._method = method
        self._workers: list[_Worker] = []
        self._leaving: list[_Worker] = []
        self._answers: dict[int, Any] = {}
        self._forgotten = 0  # answers to tasks below are dropped
        self._next = 0
        _pools.add(self)

    @property
    def size(self) -> int:
        """Workers that take tasks."""
        return len(self._workers)

    @property
    def pids(self) -> list[int]:
        """Process ids of all workers, those that are about to leave included."""
        return [one.process.pid or 0 for one in self._workers + self._leaving]

    def resize(self, size: int) -> None:
        """Starts or dismisses workers; the others go on. Those dismissed finish their tasks; first
        go those that are still starting."""
        while len(self._workers) < size:
            self._workers.append(_Worker(self._source, self._method or start_method()))
        while len(self._workers) > size:
            starting = [one for one in self._workers if one.is_starting] or self._workers
            one = starting[-1]
            self._workers.remove(one)
            one.retire()
            self._leaving.append(one)
        self._collect(0.0)

    def has_room(self) -> bool:
        """Whether a worker would begin, or have waiting, one task more."""
        return self._idlest() is not None

    def submit(self, epoch: int, indices: Sequence[int], collated: bool) -> int:
        """Gives a worker a task, as soon as one has room; the task's number. REQUIRES: workers."""
        one = self._idlest()
        while one is None:
            self._collect(1.0)
            one = self._idlest()
        number, self._next = self._next, self._next + 1
        content = array("q", indices).tobytes()
        while len(content) > _LARGE and one.outstanding:
            # A worker that writes a long answer reads no tasks: what waits must fit its pipe.
            self._collect(1.0)
        one.outstanding[number] = content
        try:
            one.tasks.send(worker.Task(number, epoch, content, collated))
        except OSError:
            pass  # it has died: `take` tells how
        return number

    def take(self, number: int, on_answer: Optional[Callable[[], None]] = None) -> Any:
        """Waits for the task's answer. `on_answer` is called whenever something has arrived.

        Raises LoaderError where the task has failed or a worker with tasks has died.
        """
        while number not in self._answers:
            if not self._workers and not self._leaving:
                raise LoaderError("the loader has lost its workers: make another one")
            self._collect(1.0)
            if on_answer is not None:
                on_answer()
        value = self._answers.pop(number)
        if isinstance(value, worker.Failure):
            raise LoaderError(f"a loader worker failed:\n{value.text}")
        return value

    def forget(self) -> None:
        """Drops all tasks; their answers are not awaited."""
        self._forgotten = self._next
        self._answers.clear()

    def close(self) -> None:
        """Ends all workers; none is left on return."""
        everyone = self._workers + self._leaving
        for one in everyone:
            one.dismiss()
            if one.is_starting:
                one.process.kill()  # it would not hear of it before it has started
        self._workers, self._leaving = [], []
        for one in everyone:
            one.results.close()  # a worker that is writing an answer gets an error and leaves
        for one in everyone:
            one.close()

    def _idlest(self) -> Optional[_Worker]:
        started = [one for one in self._workers if one.ready] or self._workers
        idlest = min(started, key=lambda one: len(one.outstanding), default=None)
        if idlest is None or len(idlest.outstanding) >= self._prefetch:
            return None
        return idlest

    def _collect(self, seconds: float) -> None:
        """Takes in answers; waits for the first one `seconds` at most."""
        everyone = self._workers + self._leaving
        by_end = {one.results: one for one in everyone}
        by_sentinel = {one.process.sentinel: one for one in everyone}
        ready = wait([*by_end, *by_sentinel], seconds)
        for end in ready:
            if end in by_end:
                self._receive(by_end[end])
        for sentinel in ready:
            if sentinel in by_sentinel:
                self._bury(by_sentinel[sentinel])

    def _receive(self, one: _Worker) -> bool:
        """Takes one answer; False: there is none and will be none."""
        try:
            message = one.results.recv_bytes()
        except (EOFError, ConnectionError):
            return False
        try:
            number, value = pickle.loads(message)
        except (EOFError, ConnectionError, FileNotFoundError):
            return False  # it died between writing and handing over the tensors
        except Exception as error:
            raise LoaderError(
                f"a batch of loader worker {one.process.pid} could not be received: {error}"
            ) from error
        if number == worker.READY:
            one.ready = True
            return True
        one.outstanding.pop(number, None)
        if number >= self._forgotten:
            self._answers[number] = value
        if one.retires and not one.outstanding:
            one.dismiss()
        return True

    def _bury(self, one: _Worker) -> None:
        """A worker has ended: takes its last answers, and raises LoaderError if some are lost."""
        while one.results.poll() and self._receive(one):
            pass
        one.close()
        where = self._leaving if one.retires else self._workers
        where.remove(one)
        lost = [number for number in one.outstanding if number >= self._forgotten]
        how = _death(one.process.exitcode)
        if lost:
            indices = array("q")
            indices.frombytes(one.outstanding[lost[0]])
            raise LoaderError(
                f"loader worker {one.process.pid} {how} while it loaded the samples "
                f"{', '.join(map(str, indices[:8]))}{' ...' if len(indices) > 8 else ''}"
            )
        if not one.retires:
            warn(f"loader worker {one.process.pid} {how}; another one takes its place")
            self._workers.append(_Worker(self._source, self._method or start_method()))


def _death(exit_code: Optional[int]) -> str:
    if exit_code is None or exit_code >= 0:
        return f"ended with exit status {exit_code}"
    hints: dict[int, str] = {
        signal.SIGKILL: ": out of memory?",
        signal.SIGBUS: ": is /dev/shm full?",
    }
    number = -exit_code
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    return f"died by {name}{hints.get(number, '')}"


_pools: "weakref.WeakSet[WorkerPool]" = weakref.WeakSet()
_parent_ends: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


def _close_in_child() -> None:
    # Else a worker would hold its siblings' pipes open and they would outlive the trainer.
    for end in list(_parent_ends):
        end.close()
    for pool in list(_pools):
        pool._workers, pool._leaving = [], []
    _parent_ends.clear()
    _pools.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_close_in_child)


def refuse_in_worker() -> None:
    """Raises LoaderError in a spawned worker that runs the script of its trainer."""
    if is_imported_by_worker():
        raise LoaderError(
            "the script is imported by a spawned loader worker and would train there: put what "
            'it does below `if __name__ == "__main__":`, or give start_method="fork"'
        )
