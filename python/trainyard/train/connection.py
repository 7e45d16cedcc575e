# SPDX-License-Identifier: Apache-2.0
"""The job's connection to its supervisor.

There is no thread: lines are read whenever the job calls, so that nothing of this library runs
beside the training. Lines that the supervisor does not take at once wait here, up to a limit.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
import weakref
from collections import deque
from typing import Callable, Deque, Optional

from . import protocol

_MAX_WAITING = 256  # lines that the supervisor has not taken yet
_COMPLAINTS = 3  # of one kind that are shown


def warn(text: str) -> None:
    """A line for the user on stderr."""
    print(f"trainyard: {text}", file=sys.stderr, flush=True)


class Connection:
    """Lines to and from the supervisor. Not for use by several threads at once.

    A process forked from this one has no connection: its copy is closed.
    """

    def __init__(self, path: str, receive: Callable[[protocol.Message], None]) -> None:
        """Connects to the Unix socket; `receive` is called with each message.

        Raises OSError where nobody listens.
        """
        self._receive = receive
        self._lines = protocol.LineBuffer()
        self._waiting: Deque[bytes] = deque()
        self._dropped = False
        self._complaints = 0
        self._socket: Optional[socket.socket] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)
        _open_connections.add(self)

    @property
    def is_open(self) -> bool:
        """Whether the supervisor is still there, as far as is known."""
        return self._socket is not None

    def send(self, line: str) -> None:
        """Sends a line, or keeps it until the supervisor takes it. Never waits."""
        if self._socket is None:
            return
        if len(self._waiting) >= _MAX_WAITING:
            self._drop_oldest_report()
            if not self._dropped:
                self._dropped = True
                warn("the supervisor does not read: old reports are dropped from now on")
        self._waiting.append(line.encode() + b"\n")
        self._flush()

    def poll(self) -> None:
        """Takes in what has arrived, and sends what waits. Never waits."""
        self._flush()
        while self._socket is not None:
            try:
                received = self._socket.recv(1 << 16)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._lose(f"connection to the supervisor lost ({error.strerror})")
                return
            if not received:
                self._lose("the supervisor has closed the connection")
                return
            for line in self._lines.feed(received):
                self._take(line)

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Takes in messages until the condition holds; False: not within `seconds`, or closed."""
        end = time.monotonic() + seconds
        self.poll()
        while not until():
            left = end - time.monotonic()
            if self._socket is None or left <= 0:
                return False
            writers = [self._socket] if self._waiting else []
            select.select([self._socket], writers, [], min(left, 1.0))
            self.poll()
        return True

    def drain(self, seconds: float) -> bool:
        """Waits until all lines are sent; False: not within `seconds`, or closed."""
        return self.wait(lambda: not self._waiting, seconds)

    def close(self) -> None:
        """Closes it without a word."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _drop_oldest_report(self) -> None:
        # The first line may be under way in part: it stays.
        for place in range(1, len(self._waiting)):
            if self._waiting[place].startswith((b"progress ", b"metric ")):
                del self._waiting[place]
                return
        del self._waiting[1]

    def _flush(self) -> None:
        while self._waiting and self._socket is not None:
            line = self._waiting[0]
            try:
                sent = self._socket.send(line, socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._waiting.clear()  # what the supervisor said last is still to be read
                return
            if sent < len(line):
                self._waiting[0] = line[sent:]
            else:
                self._waiting.popleft()

    def _take(self, line: bytes) -> None:
        if len(line) >= protocol.MAX_LINE:
            message: protocol.Message = protocol.Garbage(
                protocol.shortened(line.decode("utf-8", "replace")),
                f"expected lines of at most {protocol.MAX_LINE} bytes",
            )
        else:
            message = protocol.parse(line)
        if isinstance(message, protocol.Garbage):
            self._complain(message)
        self._receive(message)

    def _complain(self, garbage: protocol.Garbage) -> None:
        self._complaints += 1
        if self._complaints <= _COMPLAINTS:
            warn(f"ignored a line of the supervisor, {garbage.text}: {garbage.reason}")
        if self._complaints == _COMPLAINTS:
            warn("further lines that are not of the protocol are ignored without a word")

    def _lose(self, what: str) -> None:
        self.close()
        self._waiting.clear()
        warn(f"{what}; the training goes on without reports, and SIGTERM alone is the notice")


_open_connections: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _close_in_child() -> None:
    for connection in list(_open_connections):
        connection.close()


os.register_at_fork(after_in_child=_close_in_child)
