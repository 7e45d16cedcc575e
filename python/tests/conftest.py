# SPDX-License-Identifier: Apache-2.0
"""What the tests share: an environment without a cluster, a stand-in agent, and jobs under it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from stand_in_agent import StandInAgent

from trainyard.train import Job

if os.environ.get("CI"):
    import torch  # noqa: F401 - where everything is checked no test may do without it

# What CI has not been given is not left out silently: scripts/test.sh says so.
collect_ignore = (
    ["test_published_goodput.py"] if os.environ.get("TRAINYARD_WITHOUT_REFERENCE") else []
)

TIMEOUT = 240.0  # seconds for a program to end: a bound for hangs on a slow machine
CLUSTER_VARIABLES = (
    "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT"
).split()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where everything is to be checked a test that is skipped has failed."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is skipped, in CI: {report.longrepr}"


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither Trainyard's nor torchrun's variables, and SIGTERM as it was afterwards."""
    for name in list(os.environ):
        if name in CLUSTER_VARIABLES or name.startswith("TRAINYARD_"):
            monkeypatch.delenv(name)
    monkeypatch.delattr(sys, "last_type", raising=False)  # pytest's, of a test that failed
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def job() -> Iterator[Job]:
    """A job without an agent."""
    made = Job()
    yield made
    made.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[StandInAgent]:
    """An agent with one job that runs alone."""
    with StandInAgent(tmp_path) as made:
        yield made


@pytest.fixture
def job_under(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Job]]:
    """Makes jobs of an agent in this process: job_under(agent, job=0, **options of Job)."""
    jobs: list[Job] = []

    def make(agent: StandInAgent, job: int = 0, **options: Any) -> Job:
        for name, value in agent.variables(job).items():
            monkeypatch.setenv(name, value)
        jobs.append(Job(**options))
        return jobs[-1]

    yield make
    for one in jobs:
        one.close()


def leave(job: Job) -> None:
    """What the interpreter does with the job at the process's exit."""
    job._leave()


def free_port() -> int:
    """A port of the loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def variables_of_ranks(world: int) -> list[dict[str, str]]:
    """The environment of each rank on a node of its own."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in CLUSTER_VARIABLES and not name.startswith("TRAINYARD_")
    }
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    shared |= {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    shared |= {"OMP_NUM_THREADS": "1"}
    return [clean | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world)]


class Ranks:
    """A script that runs as several ranks."""

    def __init__(self, script: Path, world: int, *words: str, **variables: str) -> None:
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(script), *words],
                env=of_rank | variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for of_rank in variables_of_ranks(world)
        ]

    def wait(self, ok: bool = True) -> list[tuple[str, str]]:
        """stdout and stderr by rank. ok: all must have exit status 0."""
        try:
            outputs = [process.communicate(timeout=TIMEOUT) for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        codes = [process.returncode for process in self.processes]
        assert not ok or codes == [0] * len(codes), f"exit codes {codes}: {outputs}"
        return outputs
