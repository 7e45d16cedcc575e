# SPDX-License-Identifier: Apache-2.0
"""The job: who this worker is, the notice, reports, and turns."""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import signal
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Callable, Iterable, Optional, Type

from . import collective, ending, protocol
from .connection import warn
from .errors import NonFiniteLoss, WorldSizeError
from .stages import Turns
from .supervisor import Share, Supervisor, share_at_start

_STEPS_AFTER_NOTICE = 3  # reports of progress after which a notice counts as ignored


@dataclass(frozen=True)
class Lease:
    """Whether the job may go on; if not, the seconds left (None: not known)."""

    ok: bool
    seconds_left: Optional[float] = None


class Job:
    """This worker's place in the job, and its talk with Trainyard.

    Make it first, before slow imports: from then on SIGTERM is a notice and does not end the
    process. Without TRAINYARD_SOCKET reports go nowhere, SIGTERM alone is the notice, and without
    the variables that torchrun, too, sets it is rank 0 of 1. Use it from one thread. Processes
    forked from this one have no part in the talk, nor have loader workers that import the script.
    """

    def __init__(
        self,
        *,
        on_nan: str = "stop",
        resize: str = "keep-batch",
        agree_every: int = 1,
        turn_timeout: float = 30.0,
    ) -> None:
        """
        on_nan: `stop` or `continue`, what `loss` does with a loss that is not finite.
        resize: `keep-batch`, or `scale-lr`: the batch of one rank stays, the learning rate goes
            with the world size (see Checkpoint).
        agree_every: `should_stop` asks the other ranks at each so manieth call only.
        turn_timeout: seconds that `stage` waits for its turn before it goes on without.
        Raises ValueError for other values.
        """
        if on_nan not in ("stop", "continue"):
            raise ValueError(f"on_nan is 'stop' or 'continue', not {on_nan!r}")
        if resize not in ("keep-batch", "scale-lr"):
            raise ValueError(f"resize is 'keep-batch' or 'scale-lr', not {resize!r}")
        if agree_every < 1:
            raise ValueError(f"agree_every is at least 1, not {agree_every}")
        self.on_nan = on_nan
        self.resize = resize
        self._agree_every = agree_every
        self._asked = 0  # calls of should_stop
        self._agreed = False
        self._signalled = False
        self._reports_after_notice = 0
        self._checkpointed = 0.0
        self._metrics: set[str] = set()
        self._bad_losses = 0
        self._ended = False  # the training has reached its end
        self._pid = os.getpid()
        self._failed = False
        path = os.environ.get("TRAINYARD_SOCKET") or None
        if is_imported_by_worker():
            path = None
        else:
            self._take_signals()
            ending.watch()
        self._supervisor = Supervisor(path, share_at_start())
        self._hook = self._on_exception  # a bound method is another object each time
        self._hook_before, sys.excepthook = sys.excepthook, self._hook
        self._environment = _Environment()
        self._turns = Turns(self._supervisor, turn_timeout, self.note)
        atexit.register(self._leave)

    # ------------------------------------------------------------------------------- who it is

    @property
    def rank(self) -> int:
        """0 to world_size - 1; torch.distributed's where that is initialised, else RANK."""
        self._check_world()
        return collective.rank() if collective.is_initialized() else self._environment.rank

    @property
    def world_size(self) -> int:
        """Workers in all; torch.distributed's where that is initialised, else WORLD_SIZE.

        Raises WorldSizeError where the two contradict each other.
        """
        self._check_world()
        if collective.is_initialized():
            return collective.world_size()
        return self._environment.world_size

    @property
    def local_rank(self) -> int:
        """This worker's place on its node, and of its GPU in CUDA_VISIBLE_DEVICES."""
        return self._environment.local_rank

    @property
    def local_world_size(self) -> int:
        """Workers on this node."""
        return self._environment.local_world_size

    @property
    def node_rank(self) -> int:
        """This node's number, from 0."""
        return self._environment.node_rank

    @property
    def attempt(self) -> int:
        """The job's stay on its GPUs, from 1; 0 without Trainyard."""
        return self._environment.attempt

    @property
    def checkpoint_dir(self) -> Optional[Path]:
        """TRAINYARD_CHECKPOINT_DIR: a folder that all attempts share; None without Trainyard."""
        return self._environment.checkpoint_dir

    # ------------------------------------------------------------------------------ the notice

    @property
    def notice(self) -> Optional[float]:
        """None, or the seconds left until this worker is killed; inf where nobody has said them.

        Of this rank alone: in a training of several ranks decide by `should_stop`.
        """
        self._supervisor.poll()
        if self._supervisor.deadline is not None:
            return max(0.0, self._supervisor.deadline - time.monotonic())
        return math.inf if self._signalled else None

    def should_stop(self) -> bool:
        """Whether to save a checkpoint and leave; True after the same step on all ranks.

        Collective: each rank calls it once after each step. Raises WorldSizeError where there are
        several ranks and torch.distributed is not initialised.
        """
        self._asked += 1
        if not self._agreed and self._asked % self._agree_every == 0:
            collective.require(self.world_size, "should_stop() (`job.notice` does not)")
            self._agreed = collective.maxima([float(self.notice is not None)])[0] > 0
        return self._agreed

    def lease(self) -> Lease:
        """Asks the supervisor whether the job may go on; without an answer the notice counts."""
        answer = self._supervisor.lease()
        if answer is not None and answer.seconds_left is not None:
            return Lease(False, answer.seconds_left)
        left = self.notice
        if answer is not None or left is None:
            return Lease(True)
        return Lease(False, None if math.isinf(left) else left)

    # ----------------------------------------------------------------------------- the reports

    def progress(self, iterations: int) -> None:
        """So many iterations are done, those of earlier attempts included. One rank says it."""
        self._supervisor.say(protocol.iterations_line("progress", iterations))
        if self.notice is None:
            return
        self._reports_after_notice += 1
        if self._reports_after_notice == _STEPS_AFTER_NOTICE:
            self.note(
                f"notice is ignored: {_STEPS_AFTER_NOTICE} steps since, and the training goes on; "
                f"what comes after iteration {self._checkpointed:g} is lost unless it saves and "
                "leaves when job.should_stop() is True"
            )

    def checkpointed(self, iterations: int) -> None:
        """So many iterations are safe on disk: where the next attempt begins. One rank says it."""
        self._supervisor.say(protocol.iterations_line("checkpoint", iterations))
        self._checkpointed = iterations
        self._supervisor.flush()

    def finished(self) -> None:
        """All is done, at once: what the script does from here on may be lost. One worker of each
        node says it, as its last word; `reached_end` does so by itself."""
        self._supervisor.say("finished")
        self._supervisor.flush()

    def reached_end(self, reached: bool = True) -> None:
        """The training has reached its end, and what is left is to evaluate, export, leave.

        Each rank calls it. `finished` is said when the process of local_rank 0 ends in order:
        not after an uncaught exception, sys.exit() with an error, a kill, or `close`. Until then
        the job starts again if it is disturbed. reached: False takes it back.
        """
        self._ended = reached

    def metric(self, name: str, value: float) -> None:
        """A number by which policies may judge the training; one rank says each name.

        A value that is not finite is not sent but warned of. Raises ValueError for a name that is
        none, and for more than 32 names.
        """
        if not math.isfinite(value):
            protocol.metric_line(name, 0.0)
            warn(f"metric {name} is {value!r}: not reported")
            return
        line = protocol.metric_line(name, value)
        if name not in self._metrics and len(self._metrics) == protocol.MAX_METRICS:
            raise ValueError(f"metric {name}: a job has {protocol.MAX_METRICS} names at most")
        self._metrics.add(name)
        self._supervisor.say(line)

    def keep_metrics(self, names: Iterable[str]) -> None:
        """Keeps room for metrics that are reported later. Raises ValueError as `metric` would."""
        self._metrics.update(names)
        if len(self._metrics) > protocol.MAX_METRICS:
            raise ValueError(
                f"a job has {protocol.MAX_METRICS} names of metrics at most, not "
                f"{len(self._metrics)}"
            )

    def note(self, text: str) -> None:
        """One line for the people who look at the job: on stderr, and in `trainyard status`."""
        warn(text)
        self._supervisor.note(text)

    def loss(self, value: Any) -> float:
        """Reports the metric `loss` (rank 0) and returns it as a number.

        value: a number or a tensor with one element. Where it is NaN or infinite: a note, and with
        on_nan="stop" it raises NonFiniteLoss; checkpoints stay as they are.
        """
        number = float(value)
        if math.isfinite(number):
            if self.rank == 0:
                self.metric("loss", number)
            return number
        self._bad_losses += 1
        where = f"the loss is {number} on rank {self.rank}"
        if self.on_nan == "stop":
            text = f"{where}: stopped; the last checkpoint is of iteration {self._checkpointed:g}"
            self.note(text)
            raise NonFiniteLoss(text + '; Job(on_nan="continue") would go on')
        if self._bad_losses & (self._bad_losses - 1) == 0:  # the 1st, 2nd, 4th, 8th ...
            self.note(f"{where} ({self._bad_losses} so far): goes on")
        return number

    # ---------------------------------------------------------------------- turns and the share

    def stage(self, name: str) -> AbstractContextManager[None]:
        """`with job.stage("load")`: load, preprocess, forward or communication, one at a time.

        Where the scheduler interleaves jobs the stage begins when it is this job's turn. Raises
        StageError for an unknown name or inside another stage.
        """
        return self._turns.stage(name)

    def check_stages_ended(self) -> None:
        """Raises StageError where a stage is still open. Called at the end of an iteration."""
        self._turns.check_ended()

    @property
    def share(self) -> Share:
        """The job's share of this node, as last told."""
        self._supervisor.poll()
        return self._supervisor.share

    @property
    def shares_heard(self) -> int:
        """How often the share has changed since the start."""
        self._supervisor.poll()
        return self._supervisor.shares_heard

    def on_share(self, callback: Callable[[Share], None]) -> None:
        """Calls back with each new share: in the trainer's thread, inside a call of this class."""
        self._supervisor.on_share(callback)

    # ------------------------------------------------------------------------------------- end

    def close(self) -> None:
        """Sends what waits and hangs up; done at the process's exit, too. May be called twice.

        `finished` is not said after that: without notice, leaving with 0 says the same.
        """
        if os.getpid() != self._pid:
            return
        if self._turns.open_stage is not None:
            if not self._failed:  # else there is something worse to tell
                self.note(f"stage {self._turns.open_stage!r} was never ended")
            self._turns.end(self._turns.open_stage)
        self._supervisor.close()
        if sys.excepthook is self._hook:
            sys.excepthook = self._hook_before
        atexit.unregister(self._leave)

    def _leave(self) -> None:
        """At the process's exit."""
        if os.getpid() == self._pid and self._ended and self.local_rank == 0:
            if ending.is_in_order():
                self.finished()
        self.close()

    def _take_signals(self) -> None:
        try:
            signal.signal(signal.SIGTERM, self._on_signal)
        except ValueError:
            warn("Job() is not made in the main thread: SIGTERM is not heard as notice")

    def _on_signal(self, _number: int, _frame: Optional[FrameType]) -> None:
        # Nothing here may wait or take a lock: it runs between any two steps of the trainer.
        if os.getpid() == self._pid and not self._signalled:
            os.write(2, b"trainyard: notice: the job is to save a checkpoint and leave\n")
        self._signalled = True

    def _on_exception(
        self, kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        """What ends the script is told in `trainyard status`; its traceback is in the log."""
        if os.getpid() == self._pid and not issubclass(kind, KeyboardInterrupt):
            self._failed = True
            rank = os.environ.get("RANK")
            who = f"rank {rank}" if rank else "the script"
            self._supervisor.note(f"{who} ended with {kind.__name__}: {_in_short(str(error))}")
            self._supervisor.flush()
        self._hook_before(kind, error, trace)

    def _check_world(self) -> None:
        if not collective.is_initialized():
            return
        stated, actual = self._environment.world_size, collective.world_size()
        if actual % stated != 0:
            raise WorldSizeError(
                f"torch.distributed has {actual} workers, but WORLD_SIZE is {stated}: initialise "
                "it from the environment (init_method='env://')"
            )


def is_imported_by_worker() -> bool:
    """Whether this is a spawned process that imports the script of its parent."""
    return bool(getattr(multiprocessing.current_process(), "_inheriting", False))


class _Environment:
    """The variables of docs/live.md, "Environment". Unreadable numbers raise ValueError."""

    def __init__(self) -> None:
        self.world_size = _number("WORLD_SIZE", 1, least=1)
        self.rank = _number("RANK", 0)
        self.local_world_size = _number("LOCAL_WORLD_SIZE", 1, least=1)
        self.local_rank = _number("LOCAL_RANK", 0)
        self.node_rank = _number("NODE_RANK", _number("GROUP_RANK", 0))
        self.attempt = _number("TRAINYARD_ATTEMPT", 0)
        folder = os.environ.get("TRAINYARD_CHECKPOINT_DIR")
        self.checkpoint_dir = Path(folder) if folder else None
        if self.rank >= self.world_size:
            raise WorldSizeError(
                f"RANK is {self.rank}, but WORLD_SIZE is {self.world_size}: ranks begin at 0"
            )


def _in_short(text: str) -> str:
    """The first and the last line: of a message with a traceback, these say most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ... ".join(lines[:: len(lines) - 1]) if len(lines) > 1 else "".join(lines)


def _number(name: str, default: int, least: int = 0) -> int:
    text = os.environ.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise ValueError(f"{name}={text!r}: expected a whole number from {least} on")
    return int(text)
