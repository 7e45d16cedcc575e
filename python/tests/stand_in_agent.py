# SPDX-License-Identifier: Apache-2.0
"""Plays the supervisors of some jobs: serves the job protocol, with turns, and can misbehave.

Standard library only. In a test:

    with StandInAgent(folder, jobs=2) as agent:
        subprocess.run(command, env=os.environ | agent.variables(job=0))
        agent.events[0].progress ...

By hand, with a command for each job (turns of two jobs):

    stand_in_agent.py --jobs 2 --workers 1 -- python3 train.py
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional, Sequence

# What each stage occupies: two jobs of a group never have one of these at the same time.
RESOURCES = {"load": "storage", "preprocess": "cpu", "forward": "gpu", "communication": "network"}


@dataclass
class Heard:
    """What a job has said, all its workers together."""

    lines: list[str] = field(default_factory=list)
    progress: float = 0.0
    checkpoint: float = 0.0
    finished: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    stages: list[tuple[str, str]] = field(default_factory=list)  # ("go" or "end", stage)


class _Worker:
    """A connection."""

    def __init__(self, sock: socket.socket, job: int) -> None:
        self.socket = sock
        self.job = job
        self.received = b""
        self.wants: Optional[str] = None  # stage that it waits for
        self.holds: Optional[str] = None
        self.asked = 0  # number of its request
        self.turned = False  # had a stage in this slot


class StandInAgent:
    """Serves one socket for each job, in a thread. Jobs of one agent are a group if `group`.

    In a group time goes by slots. In each slot the jobs run stages of different resources; a job
    of several workers has one stage, which each of its workers may enter. The next slot begins
    when all stages of this one have ended (the barrier), or after `slot_timeout` seconds.
    """

    def __init__(
        self,
        folder: Path,
        jobs: int = 1,
        group: bool = False,
        version: int = 1,
        slot_timeout: float = 5.0,
        silent: bool = False,
        answer: Optional[Callable[[str], Optional[bytes]]] = None,
    ) -> None:
        """
        version: that is answered to `hello`; 0: as Trainyard 0.1.0, which does not know `hello`.
        silent: reads and never answers. answer: raw bytes for a line instead of the usual answer;
        None: the usual one.
        """
        self.heard = [Heard() for _ in range(jobs)]
        self.overlaps: list[str] = []  # stages of one resource at the same time: must stay empty
        self.slots = 0
        self.late = 0  # stages that were left behind by the end of their slot
        self._group = group
        self._version = version
        self._slot_timeout = slot_timeout
        self._silent = silent
        self._answer = answer
        self._lock = threading.RLock()
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._paths = [folder / f"job{job}.sock" for job in range(jobs)]
        self._stop_seconds: list[Optional[float]] = [None] * jobs
        self._tunes = [""] * jobs
        self._slot_jobs: dict[int, str] = {}  # stage of each job in this slot
        self._slot_begun = 0.0
        self._requests = 0
        self._first = 0  # job that is asked first in the next slot
        self._ends = False
        for job, path in enumerate(self._paths):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(path))
            listener.listen(64)
            self._selector.register(listener, selectors.EVENT_READ, job)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "StandInAgent":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        self._thread.join(10)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def variables(self, job: int = 0, rank: int = 0, world: int = 1) -> dict[str, str]:
        """The environment of a worker, but for MASTER_ADDR, MASTER_PORT and the checkpoints."""
        return {
            "TRAINYARD_SOCKET": str(self._paths[job]),
            "TRAINYARD_JOB": str(job + 1),
            "TRAINYARD_ATTEMPT": "1",
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(world),
            "NODE_RANK": "0",
            "GROUP_RANK": "0",
        }

    def stop(self, seconds: float, job: int = 0) -> None:
        """Gives notice to a job by the line; without SIGTERM."""
        with self._lock:
            self._stop_seconds[job] = seconds
            self._send_job(job, f"stop {seconds:g}\n".encode())

    def tune(self, job: int = 0, **values: float) -> None:
        """Tells a job its share, as tune(loader_workers=4)."""
        text = " ".join(f"{name}={value:g}" for name, value in values.items())
        with self._lock:
            self._tunes[job] = f"tune {text}\n"
            self._send_job(job, self._tunes[job].encode())

    def say(self, content: bytes, job: int = 0) -> None:
        """Sends anything to all workers of the job."""
        with self._lock:
            self._send_job(job, content)

    def hang_up(self, job: int = 0) -> None:
        """Closes all connections of the job."""
        with self._lock:
            for worker in [one for one in self._workers if one.job == job]:
                self._leave(worker)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> bool:
        """Until the condition holds; False: not within `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._lock:
                if condition():
                    return True
            time.sleep(0.005)
        return False

    # ------------------------------------------------------------------------------- connections

    def _serve(self) -> None:
        while not self._ends:
            for key, _ in self._selector.select(0.02):
                with self._lock:
                    if isinstance(key.data, int):
                        self._welcome(key.fileobj, key.data)  # type: ignore[arg-type]
                    else:
                        self._hear(key.data)
            with self._lock:
                self._turn()

    def _welcome(self, listener: socket.socket, job: int) -> None:
        connection, _ = listener.accept()
        worker = _Worker(connection, job)
        self._workers.append(worker)
        self._selector.register(connection, selectors.EVENT_READ, worker)
        self._send(worker, self._tunes[job].encode())
        if self._stop_seconds[job] is not None:
            self._send(worker, f"stop {self._stop_seconds[job]:g}\n".encode())

    def _hear(self, worker: _Worker) -> None:
        if worker not in self._workers:
            return
        try:
            received = worker.socket.recv(1 << 16)
        except OSError:
            received = b""
        if not received:
            self._leave(worker)
            return
        *lines, worker.received = (worker.received + received).split(b"\n")
        for line in lines:
            self._take(worker, line.decode())

    def _leave(self, worker: _Worker) -> None:
        self._end(worker)
        worker.wants = None
        self._selector.unregister(worker.socket)
        self._workers.remove(worker)
        worker.socket.close()

    def _send(self, worker: _Worker, content: bytes) -> None:
        if content and not self._silent:
            try:
                worker.socket.sendall(content)
            except OSError:
                pass  # it has left; the end of its connection is read next

    def _send_job(self, job: int, content: bytes) -> None:
        for worker in self._workers:
            if worker.job == job:
                self._send(worker, content)

    # ------------------------------------------------------------------------------------- lines

    def _take(self, worker: _Worker, line: str) -> None:
        heard = self.heard[worker.job]
        heard.lines.append(line)
        if self._answer is not None and (raw := self._answer(line)) is not None:
            self._send(worker, raw)
            return
        word, _, rest = line.partition(" ")
        if word == "progress":
            heard.progress = float(rest)
        elif word == "checkpoint":
            heard.checkpoint = float(rest)
        elif word == "metric":
            name, value = rest.split()
            heard.metrics[name] = float(value)
        elif line == "finished":
            heard.finished += 1
        elif line == "lease?":
            seconds = self._stop_seconds[worker.job]
            lease = "ok" if seconds is None else f"stop {seconds:g}"
            self._send(worker, f"lease {lease}\n".encode())
        elif word in ("hello", "stage", "end", "note") and self._version >= 1:
            self._take_addition(worker, word, rest)
        elif line != "no-signals":
            self._send(worker, b"error: expected progress, checkpoint, metric, finished ...\n")

    def _take_addition(self, worker: _Worker, word: str, rest: str) -> None:
        if word == "hello":
            self.heard[worker.job].programs.append(rest.split()[1])
            self._send(worker, f"hello {self._version}\n".encode())
        elif word == "note":
            self.heard[worker.job].notes.append(rest)
        elif word == "end":
            self._end(worker)
        elif word == "stage":
            self._end(worker)
            self._requests += 1
            worker.wants, worker.asked = rest, self._requests
            self._turn()

    # ------------------------------------------------------------------------------------- turns

    def _end(self, worker: _Worker) -> None:
        if worker.holds is not None:
            self.heard[worker.job].stages.append(("end", worker.holds))
            worker.holds = None
            worker.turned = True

    def _go(self, worker: _Worker) -> None:
        stage = worker.wants
        assert stage is not None
        for other in self._workers:
            clash = other.holds is not None and RESOURCES[other.holds] == RESOURCES[stage]
            if self._group and clash and other.job != worker.job:
                self.overlaps.append(f"job {worker.job} {stage}, job {other.job} {other.holds}")
        worker.wants, worker.holds = None, stage
        self.heard[worker.job].stages.append(("go", stage))
        self._send(worker, f"go {stage}\n".encode())

    def _turn(self) -> None:
        if not self._group:
            for worker in self._workers:
                if worker.wants is not None:
                    self._go(worker)
            return
        self._enter_slot()
        if self._slot_is_over():
            self._begin_slot()

    def _enter_slot(self) -> None:
        """Workers that want the stage that their job has in this slot."""
        for worker in self._workers:
            stage = self._slot_jobs.get(worker.job)
            if worker.wants is not None and worker.wants == stage and not worker.turned:
                self._go(worker)

    def _slot_is_over(self) -> bool:
        timed_out = time.monotonic() - self._slot_begun >= self._slot_timeout
        inside = [one for one in self._workers if self._is_inside(one)]
        if not inside:
            return True
        if timed_out:
            # Who is late keeps its resource: the next slot goes on without those jobs.
            self.late += len(inside)
        return timed_out

    def _is_inside(self, worker: _Worker) -> bool:
        """Whether the slot waits for the worker: it has a stage, or may still ask for its turn."""
        stage = self._slot_jobs.get(worker.job)
        return stage is not None and not worker.turned and worker.wants in (None, stage)

    def _begin_slot(self) -> None:
        asked = [one for one in self._workers if one.wants is not None]
        asked.sort(key=lambda one: one.asked, reverse=True)  # a job's longest waiting one counts
        waiting = {one.job: one.wants for one in asked}
        taken = {RESOURCES[one.holds] for one in self._workers if one.holds is not None}
        order = sorted(waiting, key=lambda job: (job - self._first) % len(self.heard))
        self._slot_jobs = {}
        for job in order:
            stage = waiting[job]
            assert stage is not None
            if RESOURCES[stage] not in taken:
                taken.add(RESOURCES[stage])
                self._slot_jobs[job] = stage
        if not self._slot_jobs:
            return
        self._first = (self._first + 1) % len(self.heard)
        self.slots += 1
        self._slot_begun = time.monotonic()
        for worker in self._workers:
            worker.turned = False
        self._enter_slot()


def _run(arguments: argparse.Namespace, folder: Path) -> int:
    with StandInAgent(folder, arguments.jobs, group=arguments.jobs > 1) as agent:
        processes = []
        for job in range(arguments.jobs):
            checkpoints = folder / f"checkpoints{job}"
            checkpoints.mkdir()
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            for rank in range(arguments.workers):
                variables = agent.variables(job, rank, arguments.workers)
                variables |= {
                    "TRAINYARD_CHECKPOINT_DIR": str(checkpoints),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port),
                }
                processes.append(subprocess.Popen(arguments.command, env=os.environ | variables))
        codes = [process.wait() for process in processes]
        summary = {
            "exit_codes": codes,
            "slots": agent.slots,
            "overlaps": agent.overlaps,
            "late": agent.late,
            "jobs": [
                {
                    "progress": heard.progress,
                    "checkpoint": heard.checkpoint,
                    "finished": heard.finished,
                    "metrics": heard.metrics,
                    "notes": heard.notes,
                    "stages": sum(word == "go" for word, _ in heard.stages),
                }
                for heard in agent.heard
            ],
        }
    print(json.dumps(summary, indent=2))
    return 0 if not any(codes) and not agent.overlaps else 1


def main(words: Sequence[str]) -> int:
    """Runs a command as the workers of some jobs; prints what was heard as JSON."""
    parser = argparse.ArgumentParser(description="Runs jobs under a stand-in of the agent.")
    parser.add_argument("--jobs", type=int, default=1, help="of one group")
    parser.add_argument("--workers", type=int, default=1, help="of each job")
    parser.add_argument("command", nargs="+", metavar="-- COMMAND")
    with tempfile.TemporaryDirectory(prefix="trainyard-stand-in-") as folder:
        return _run(parser.parse_args(words), Path(folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
