# SPDX-License-Identifier: Apache-2.0
"""A live cluster on loopback, and what is left of it: nothing.

`trainyard up`, or a controller with agents where nodes have to state their CPUs. Its jobs are the
trainers of workloads/, with trails.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from train_test.trail import Trail

SOURCE = Path(__file__).resolve().parent.parent.parent
PYTHON = "/usr/bin/python3"
ENDED = ("completed", "rejected", "cancelled", "failed")


class ExperimentError(Exception):
    """The experiment could not be done; says why."""


@dataclass(frozen=True)
class Shape:
    """Nodes that are alike. With `cpus` they are declared in a cluster file."""

    nodes: int = 1
    gpus: int = 4
    cpus: int | None = None
    apart: bool = False  # controller and agents, in place of `up`
    found: bool = False  # by the driver, and not declared; of nodes that are apart

    @property
    def is_apart(self) -> bool:
        return self.apart or self.cpus is not None


@dataclass
class Cluster:
    trainyard: Path
    folder: Path
    policy: str
    shape: Shape = field(default_factory=Shape)
    profiles: Path | None = None
    preset: Path | None = None
    grace: float = 20.0
    options: Sequence[str] = ()  # further ones, of `up` or of the controller
    python: Sequence[str] = (PYTHON, "-B")  # with torch
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder = self.folder.resolve()
        self._servers: list[subprocess.Popen[bytes]] = []
        self.leftovers = 0  # processes that had to be killed after the end

    # ----------------------------------------------------------------------------- its whole life

    def __enter__(self) -> "Cluster":
        port = free_port()
        self._address = f"127.0.0.1:{port}"
        try:
            if not self.shape.is_apart:
                self._serve("up", "--nodes", str(self.shape.nodes), "--gpus", str(self.shape.gpus),
                            *self._controller_options("up"))
            else:
                self.start_controller()
                for node in range(self.shape.nodes):
                    self._serve("agent", "--controller", self._address, "--node", f"n{node}",
                                "--gpus", "auto" if self.shape.found else str(self.shape.gpus),
                                "--state",
                                str(self.folder / f"agent{node}"), "--checkpoints",
                                str(self.folder / "checkpoints"))
            self.wait_nodes()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._end()

    def start_controller(self) -> None:
        """At first, and after `kill_controller`. Of nodes that are apart."""
        nodes = self._write_cluster_file() if self.shape.cpus else \
            f"{self.shape.nodes}x{self.shape.gpus}"
        self._serve("controller", "--cluster", str(nodes), *self._controller_options("controller"))
        self._servers.insert(0, self._servers.pop())

    def kill_controller(self) -> None:
        controller = self._servers.pop(0)
        controller.kill()
        controller.wait()

    def _controller_options(self, name: str) -> list[str]:
        options = ["--listen", self._address, "--policy", self.policy, "--grace", f"{self.grace}s",
                   "--state", str(self.folder / name)]
        if self.profiles is not None:
            options += ["--profiles", str(self.profiles)]
        if self.preset is not None:
            options += ["--preset", str(self.preset)]
        return [*options, *self.options]

    def _write_cluster_file(self) -> Path:
        file = self.folder / "cluster.toml"
        file.write_text(f"[[nodes]]\ncount = {self.shape.nodes}\ngpus = {self.shape.gpus}\n"
                        f"cpus = {self.shape.cpus}\nmemory_gb = 64\n")
        return file

    def _serve(self, command: str, *arguments: str) -> None:
        with (self.folder / f"{command}.log").open("ab") as log:
            self._servers.append(subprocess.Popen(
                [str(self.trainyard), command, *arguments], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True))

    def _nodes_up(self) -> int:
        for server in self._servers:
            if server.poll() is not None:
                raise ExperimentError(f"a server has ended with {server.returncode}: see "
                                      f"{self.folder}/*.log")
        with suppress(ExperimentError):
            return sum(node["up"] for node in self.call("nodes")["nodes"])
        return 0

    def _end(self) -> None:
        """Cancels all jobs, ends the servers, and kills what is left of either."""
        with suppress(ExperimentError, subprocess.TimeoutExpired):
            live = [str(job["job"]) for job in self.call("status")["jobs"]]
            if live:
                self.call("cancel", *live)
            # A cancelled job's workers leave within the grace; the servers are told of it.
            self.wait_for(
                lambda: all(node["gpus_used"] == 0 for node in self.call("nodes")["nodes"]),
                self.grace + 5, "the workers to leave")
        for server in reversed(self._servers):
            stop(server, self.grace + 10)
        self._servers.clear()
        with suppress(ExperimentError):  # agents end before the supervisors of their jobs
            self.wait_for(lambda: not list(processes_of(self.folder)), self.grace + 5, "the end")
        for process in processes_of(self.folder):
            self.leftovers += 1
            print(f"train-test: process {process} was left behind; it is killed", file=sys.stderr)
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    # ------------------------------------------------------------------------------------- calls

    def call(self, *arguments: str) -> Any:
        """The JSON answer of a command. Raises ExperimentError where the command fails."""
        done = subprocess.run(
            [str(self.trainyard), arguments[0], "--controller", self._address, "--json",
             *arguments[1:]], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise ExperimentError(f"trainyard {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def text(self, *arguments: str) -> str:
        """What a command says to people."""
        done = subprocess.run(
            [str(self.trainyard), arguments[0], "--controller", self._address, *arguments[1:]],
            capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    def submit(self, gpus: int | str, script: str, arguments: Sequence[str] = (),
               **options: Any) -> int:
        """A trainer of workloads/; options are those of `trainyard submit`, with `_` for `-`."""
        words = ["--gpus", str(gpus), "--cwd", str(self.folder)]
        for name, value in options.items():
            words += ["--" + name.replace("_", "-"), str(value)]
        for name in ("PYTHONPATH",):
            if os.environ.get(name):
                words += ["--env", f"{name}={os.environ[name]}"]
        command = [*self.python, str(SOURCE / "workloads" / script), "--device", self.device,
                   "--trail", *arguments]
        return int(self.call("submit", *words, "--", *command)["job"])

    def status(self, job: int) -> dict[str, Any]:
        found: dict[str, Any] = self.call("status", str(job))["jobs"][0]
        return found

    def all_jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("status", "--all")["jobs"]
        return found

    def drain(self, node: str = "n0") -> None:
        self.call("drain", node, "--now")

    def undrain(self, node: str = "n0") -> None:
        self.call("undrain", node)

    def resize(self, job: int, gpus: int) -> None:
        self.call("resize", str(job), "--gpus", str(gpus))

    # ---------------------------------------------------------------------------------- waiting

    def wait_for(self, condition: Callable[[], Any], seconds: float, what: str,
                 pause: float = 0.1) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise ExperimentError(f"waited {seconds:.0f} s in vain for {what}")
            time.sleep(pause)

    def wait_nodes(self) -> None:
        self.wait_for(lambda: self._nodes_up() == self.shape.nodes, 60, "the nodes to be up")

    def wait_end(self, job: int, seconds: float) -> dict[str, Any]:
        """The job's status once it has completed. Raises ExperimentError if it has not."""
        self.wait_for(lambda: self.status(job)["state"] in ENDED, seconds, f"the end of job {job}",
                      pause=0.3)
        status = self.status(job)
        if status["state"] != "completed":
            raise ExperimentError(f"job {job} is {status['state']}: {status['reason']} "
                                  f"exit code {status['exit_code']}; {self.log(job)}")
        return status

    def wait_steps(self, job: int, iterations: int, seconds: float = 120) -> None:
        """Until the trainers have done so many iterations, and the job is running."""
        self.wait_for(lambda: self.trail(job).last >= iterations, seconds,
                      f"iteration {iterations} of job {job}")

    def trail(self, job: int) -> Trail:
        return Trail(self.checkpoints(job) / "trail")

    def checkpoints(self, job: int) -> Path:
        state = "checkpoints" if self.shape.is_apart else "up/checkpoints"
        return self.folder / state / str(job)

    def log(self, job: int) -> str:
        """The end of what its worker 0 has written."""
        return self.text("logs", str(job))[-2000:]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def stop(server: "subprocess.Popen[bytes]", seconds: float) -> None:
    """SIGINT twice, then SIGKILL, each if the last has not ended it."""
    for number, patience in ((signal.SIGINT, seconds), (signal.SIGINT, 3.0), (signal.SIGKILL, 3.0)):
        if server.poll() is not None:
            return
        server.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(patience)


def children_of(process: int) -> list[int]:
    """Processes that it has started and that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rsplit(")")[-1].split()[:2]
            if int(parent) == process and state != "Z":
                found.append(int(stat.parent.name))
    return found


def processes_of(folder: Path) -> Iterator[int]:
    """Processes that name the folder in their command line or environment."""
    mark = str(folder).encode() + b"/"
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        with suppress(OSError):
            text = (process / "cmdline").read_bytes() + b"\0" + (process / "environ").read_bytes()
            if mark in text and (process / "stat").read_text().rsplit(")")[-1].split()[0] != "Z":
                yield int(process.name)
