# SPDX-License-Identifier: Apache-2.0
"""What the supervisor has said, and what it is told: the protocol's state for one process."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from dataclasses import dataclass
from typing import Callable, Deque, Mapping, Optional

from .. import __version__
from . import protocol
from .connection import Connection, warn

HELLO_PATIENCE = 10.0  # seconds in which a supervisor answers `hello`, or has version 0
LEASE_PATIENCE = 5.0
_DRAIN_PATIENCE = 5.0


@dataclass(frozen=True)
class Share:
    """The job's share of this node, for all its workers there. None: nobody has said.

    cpus: cores (3.5); memory_mib: MiB; storage_kbps: kB/s; loader_workers: processes.
    """

    cpus: Optional[float] = None
    memory_mib: Optional[int] = None
    storage_kbps: Optional[int] = None
    loader_workers: Optional[int] = None


def share_of(values: Mapping[str, float]) -> Share:
    """The share of a `tune` line's values."""

    def whole(name: str) -> Optional[int]:
        return int(values[name]) if name in values else None

    return Share(
        cpus=values.get("cpus"),
        memory_mib=whole("memory_mib"),
        storage_kbps=whole("storage_kbps"),
        loader_workers=whole("loader_workers"),
    )


class Supervisor:
    """One process's talk with its supervisor; without a socket it hears and says nothing."""

    def __init__(self, path: Optional[str], share: Share) -> None:
        """`path`: TRAINYARD_SOCKET, or None. A socket where nobody listens is warned of."""
        self.share = share
        self.shares_heard = 0  # `tune` lines
        self.deadline: Optional[float] = None  # of the notice, by time.monotonic()
        self.refusals = 0  # `error:` lines
        self._version: Optional[int] = None  # None: `hello` is not answered yet
        self._went: Optional[str] = None  # the stage of the last `go`
        self._lease_answers: Deque[protocol.LeaseAnswer] = deque(maxlen=4)
        self._on_share: list[Callable[[Share], None]] = []
        self._connection: Optional[Connection] = None
        if path is None:
            self._version = 0
            return
        try:
            self._connection = Connection(path, self._receive)
        except OSError as error:
            warn(
                f"no supervisor at TRAINYARD_SOCKET={path} ({error.strerror}); the training goes "
                "on without reports, and SIGTERM alone is the notice"
            )
            self._version = 0
            return
        self._connection.send(f"hello {protocol.VERSION} trainyard-python/{__version__}")

    @property
    def is_there(self) -> bool:
        """Whether there is an open connection."""
        return self._connection is not None and self._connection.is_open

    def poll(self) -> None:
        """Takes in what has arrived. Never waits."""
        if self._connection is not None:
            self._connection.poll()

    def say(self, line: str) -> None:
        """Sends a line of any version of the protocol. Never waits."""
        if self._connection is not None:
            self._connection.send(line)

    def version(self) -> int:
        """The version in which both sides speak; waits for the supervisor's, at the first call."""
        if self._version is None and self._connection is not None:
            if not self._connection.wait(lambda: self._version is not None, HELLO_PATIENCE):
                if self.is_there:
                    warn(f"the supervisor has not answered `hello` in {HELLO_PATIENCE:g} s")
                self._version = 0
        return min(self._version or 0, protocol.VERSION)

    def note(self, text: str) -> None:
        """Sends a note, if the supervisor understands it."""
        if self.version() >= 1:
            self.say(protocol.note_line(text))

    def lease(self) -> Optional[protocol.LeaseAnswer]:
        """Asks for the lease; None: nobody has answered."""
        if self._connection is None:
            return None
        self._lease_answers.clear()
        self._connection.send("lease?")
        self._connection.wait(lambda: bool(self._lease_answers), LEASE_PATIENCE)
        return self._lease_answers.popleft() if self._lease_answers else None

    def ask_turn(self, stage: str, patience: float) -> bool:
        """Asks for a turn and waits for `go`; False: it has not come within `patience` seconds."""
        if self._connection is None:
            return False
        self._went = None
        self._connection.send(f"stage {stage}")
        return self._connection.wait(lambda: self._went == stage, patience)

    def on_share(self, callback: Callable[[Share], None]) -> None:
        """Calls back with each new share, in the thread that reads it."""
        self._on_share.append(callback)

    def flush(self) -> bool:
        """Waits, for some seconds at most, until all that has been said is sent."""
        if self._connection is None:
            return True
        return self._connection.drain(_DRAIN_PATIENCE)

    def close(self) -> None:
        """Sends what waits and closes the connection."""
        if self._connection is not None:
            self.flush()
            self._connection.close()

    def _receive(self, message: protocol.Message) -> None:
        if isinstance(message, protocol.Stop):
            deadline = time.monotonic() + message.seconds
            self.deadline = min(deadline, math.inf if self.deadline is None else self.deadline)
        elif isinstance(message, protocol.Tune):
            self._take_share(share_of(message.values))
        elif isinstance(message, protocol.Go):
            self._went = message.stage
        elif isinstance(message, protocol.LeaseAnswer):
            self._lease_answers.append(message)
        elif isinstance(message, protocol.Hello):
            self._take_version(message.version)
        elif isinstance(message, protocol.Refusal):
            if self._version is None:
                self._take_version(0)  # `hello` was the first line: 0.1.0 does not know it
                return
            self.refusals += 1
            if self.refusals <= 3:
                warn(f"the supervisor did not understand a line: {message.reason}")

    def _take_version(self, version: int) -> None:
        if self._version is None:
            self._version = version

    def _take_share(self, share: Share) -> None:
        self.share = share
        self.shares_heard += 1
        for callback in list(self._on_share):
            callback(share)


def share_at_start() -> Share:
    """The share that the environment states (TRAINYARD_CPUS and others); unreadable ones pass."""
    values: dict[str, float] = {}
    for name in ("cpus", "memory_mib", "storage_kbps", "loader_workers"):
        text = os.environ.get("TRAINYARD_" + name.upper())
        if text is None:
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value) and value >= 0:
            values[name] = value
        else:
            warn(f"ignored TRAINYARD_{name.upper()}={text!r}: expected a number from 0 on")
    return share_of(values)
