# SPDX-License-Identifier: Apache-2.0
"""When a job counts as finished: what a script does after the training is not lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from conftest import TIMEOUT, Ranks, leave
from stand_in_agent import Heard, StandInAgent

from trainyard.train import Job

pytest.importorskip("torch")
JobUnder = Callable[..., Job]

TRAINS = """
import sys, torch
from pathlib import Path
from trainyard.train import Checkpoint, DataLoader, Job
job = Job()
torch.set_num_threads(1)
model = torch.nn.Linear(1, 1)
loader = DataLoader(torch.zeros(6, 1), 2, job)
checkpoint = Checkpoint(job, model=model, loader=loader, folder=Path(sys.argv[1]))
assert not checkpoint.finished
for batch in checkpoint.steps(epochs=2):
    assert not checkpoint.finished
    job.metric("step", loader.iterations)
    if "wait" in sys.argv and loader.iterations == 4:
        sys.stdin.readline()
print(f"end {loader.iterations} {checkpoint.finished}", flush=True)
job.metric("exports", 1)
"""
HAS_TRAINED = """
import sys
from trainyard.train import Job
job = Job()
job.reached_end()
job.metric("exports", 1)
"""


def has_left(agent: StandInAgent, programs: int) -> bool:
    """Waits until so many processes have come and gone, and all that they have said is heard."""
    return agent.wait_for(
        lambda: len(agent.heard[0].programs) == programs and not agent._workers, TIMEOUT
    )


class Script:
    """A script under an agent: what trains, and what follows."""

    def __init__(
        self, agent: StandInAgent, folder: Path, after: str, *words: str, trains: str = TRAINS
    ) -> None:
        path = folder / "script.py"
        path.write_text(trains + after)
        self.agent = agent
        self._programs = len(agent.heard[0].programs) + 1
        self.process = subprocess.Popen(
            [sys.executable, str(path), str(folder / "checkpoints"), *words],
            env=os.environ | agent.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )

    @property
    def heard(self) -> Heard:
        return self.agent.heard[0]

    def wait_for_metric(self, name: str, value: float) -> None:
        """Until it has been heard, and so all that was said before."""
        assert self.agent.wait_for(lambda: self.heard.metrics.get(name) == value, TIMEOUT)

    def notice(self) -> None:
        """As a drain gives it."""
        self.agent.stop(600)
        self.process.send_signal(signal.SIGTERM)

    def end(self) -> tuple[int, str, str]:
        """Exit status, stdout, stderr; lets it go on where it reads a line."""
        output, errors = self.process.communicate("\n", timeout=TIMEOUT)
        assert has_left(self.agent, self._programs)
        return self.process.returncode, output, errors


EXPORTS = "sys.stdin.readline()\nprint('exported')\n"


def test_finished_is_said_at_the_end_of_the_process_and_not_of_the_loop(
    agent: StandInAgent, tmp_path: Path
) -> None:
    script = Script(agent, tmp_path, EXPORTS)
    script.wait_for_metric("exports", 1)
    assert (script.heard.checkpoint, script.heard.finished) == (6, 0)
    assert script.end()[:2] == (0, "end 6 True\nexported\n")
    assert script.heard.lines[-1] == "finished"
    assert script.heard.finished == 1


def test_an_exception_after_the_loop_is_not_finished(agent: StandInAgent, tmp_path: Path) -> None:
    script = Script(agent, tmp_path, "raise OSError('no room for the export')\n")
    status, output, errors = script.end()
    assert (status, output) == (1, "end 6 True\n")
    assert "no room for the export" in errors
    assert (script.heard.metrics["exports"], script.heard.finished) == (1, 0)


@pytest.mark.parametrize("error, status", [
    ("raise ValueError(1)", 1),
    ("sys.excepthook = lambda *_: None; raise KeyError(1)", 1),  # of a library of the script
    ("sys.exit(3)", 3),
    ("sys.exit('no room for the export')", 1),
    ("import os; os._exit(0)", 0),  # not in order; the exit status counts
])
def test_an_end_with_an_error_is_not_finished(
    error: str, status: int, agent: StandInAgent, tmp_path: Path
) -> None:
    script = Script(agent, tmp_path, error, trains=HAS_TRAINED)
    assert script.end()[0] == status
    assert (script.heard.metrics["exports"], script.heard.finished) == (1, 0)


@pytest.mark.parametrize("leaves", ["", "sys.exit()", "sys.exit(0)",
                                    "try:\n    raise KeyError(1)\nexcept KeyError:\n    pass"])
def test_an_end_in_order_is_finished(leaves: str, agent: StandInAgent, tmp_path: Path) -> None:
    script = Script(agent, tmp_path, leaves, trains=HAS_TRAINED)
    assert script.end()[0] == 0
    assert script.heard.finished == 1


def test_notice_during_the_export_leaves_it_to_its_end(
    agent: StandInAgent, tmp_path: Path
) -> None:
    script = Script(agent, tmp_path, EXPORTS)
    script.wait_for_metric("exports", 1)
    script.notice()
    assert script.end()[:2] == (0, "end 6 True\nexported\n")
    assert script.heard.finished == 1


def test_a_kill_during_the_export_does_the_export_again_and_nothing_else(
    agent: StandInAgent, tmp_path: Path
) -> None:
    script = Script(agent, tmp_path, EXPORTS)
    script.wait_for_metric("exports", 1)
    script.notice()
    script.process.kill()
    assert script.end()[0] == -signal.SIGKILL
    assert script.heard.finished == 0
    agent._stop_seconds[0] = None
    script.heard.metrics.clear()
    again = Script(agent, tmp_path, EXPORTS)
    assert again.end()[:2] == (0, "end 6 True\nexported\n")
    assert "step" not in again.heard.metrics
    assert again.heard.finished == 1


def test_a_loop_that_notice_has_ended_is_not_finished(agent: StandInAgent, tmp_path: Path) -> None:
    script = Script(agent, tmp_path, "", "wait")
    script.wait_for_metric("step", 4)
    script.notice()
    assert script.end()[:2] == (0, "end 4 False\n")
    assert (script.heard.checkpoint, script.heard.finished) == (4, 0)


def test_a_second_loop_takes_the_end_of_the_first_back(agent: StandInAgent, tmp_path: Path) -> None:
    second = "for batch in checkpoint.steps(epochs=3):\n    assert not checkpoint.finished\n    "
    script = Script(agent, tmp_path, second + "sys.exit(0)\n")
    assert script.end()[0] == 0
    assert script.heard.finished == 0


def test_a_job_that_has_hung_up_says_nothing_more(agent: StandInAgent, job_under: JobUnder) -> None:
    job = job_under(agent)
    job.reached_end()
    job.close()
    leave(job)
    assert has_left(agent, 1)
    assert agent.heard[0].finished == 0


@pytest.mark.parametrize("nodes", [1, 2])
def test_one_worker_of_each_node_says_it(nodes: int, agent: StandInAgent, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        TRAINS.replace("job = Job()", "job = Job()\ntorch.distributed.init_process_group('gloo')")
        + "torch.distributed.destroy_process_group()\n"
    )
    variables = agent.variables()
    shared = {name: variables[name] for name in ("TRAINYARD_SOCKET", "TRAINYARD_JOB")}
    if nodes == 2:
        shared |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    Ranks(path, 2, str(tmp_path / "checkpoints"), **shared).wait()
    assert has_left(agent, 2)
    assert agent.heard[0].finished == nodes
