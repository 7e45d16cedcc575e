# SPDX-License-Identifier: Apache-2.0
"""A training job's side of Trainyard's job protocol (src/supervisor/job_protocol.h).

Copy this file into a project of your own; it needs the standard library only.
"""

import os
import signal
import socket
import sys


class Job:
    """Hears the notice and reports progress.

    The notice comes as SIGTERM and as a `stop` line. Where there is no TRAINYARD_SOCKET, reports go
    nowhere and SIGTERM alone is the notice. Make it before anything slow is imported: until then
    SIGTERM ends the process.
    """

    def __init__(self) -> None:
        self._stop = False
        self._received = b""
        self._socket: socket.socket | None = None
        signal.signal(signal.SIGTERM, self._on_signal)
        if path := os.environ.get("TRAINYARD_SOCKET"):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(path)

    def progress(self, iterations: int) -> None:
        """So many iterations are done, those of earlier attempts included."""
        self._say(f"progress {iterations}")

    def checkpointed(self, iterations: int) -> None:
        """So many iterations are safe on disk: where the next attempt will begin."""
        self._say(f"checkpoint {iterations}")

    def finished(self) -> None:
        """The training has reached its end."""
        self._say("finished")

    def stop_requested(self) -> bool:
        """Whether notice has been given: save a checkpoint and leave."""
        self._hear()
        return self._stop

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._stop = True

    def _say(self, line: str) -> None:
        if self._socket is not None:
            self._socket.sendall(line.encode() + b"\n")

    def _hear(self) -> None:
        while self._socket is not None:
            try:
                received = self._socket.recv(4096, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if not received:  # the other side is gone
                self._socket.close()
                self._socket = None
            self._received += received
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            if line.startswith(b"stop "):
                self._stop = True
            else:
                print("trainyard:", line.decode(errors="replace"), file=sys.stderr)
