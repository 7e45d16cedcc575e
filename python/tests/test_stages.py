# SPDX-License-Identifier: Apache-2.0
"""Turns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from conftest import TIMEOUT
from stand_in_agent import StandInAgent

from trainyard.train import Job, StageError

JobUnder = Callable[..., Job]


def test_a_stage_begins_with_its_turn_and_its_end_is_told(
    agent: StandInAgent, job_under: JobUnder
) -> None:
    job = job_under(agent)
    for _ in range(3):
        for stage in ("load", "preprocess", "forward", "communication"):
            with job.stage(stage):
                pass
    assert agent.wait_for(lambda: len(agent.heard[0].stages) == 24)
    assert agent.heard[0].stages[:4] == [
        ("go", "load"), ("end", "load"), ("go", "preprocess"), ("end", "preprocess")
    ]


def test_a_stage_inside_another_one_is_an_error(agent: StandInAgent, job_under: JobUnder) -> None:
    job = job_under(agent)
    with pytest.raises(StageError, match="stage 'forward' begins, but stage 'load' has not ended"):
        with job.stage("load"):
            with job.stage("forward"):
                pass
    with job.stage("forward"):  # the error has ended the stage
        pass
    assert agent.wait_for(lambda: agent.heard[0].stages[-1:] == [("end", "forward")])


def test_an_unknown_stage_is_named(job: Job) -> None:
    with pytest.raises(StageError, match="unknown stage 'lode'; the stages are load"):
        with job.stage("lode"):
            pass


def test_a_stage_that_ends_by_an_exception_is_ended(
    agent: StandInAgent, job_under: JobUnder
) -> None:
    job = job_under(agent)
    with pytest.raises(KeyError):
        with job.stage("load"):
            raise KeyError("x")
    assert agent.wait_for(lambda: ("end", "load") in agent.heard[0].stages)


def test_a_stage_that_is_never_ended_is_named(agent: StandInAgent, job_under: JobUnder) -> None:
    job = job_under(agent)
    forgotten = job.stage("load")
    forgotten.__enter__()
    with pytest.raises(StageError, match="stage 'load' has not ended by the end of the iteration"):
        job.check_stages_ended()
    job.close()
    assert agent.wait_for(lambda: ("end", "load") in agent.heard[0].stages)
    assert agent.heard[0].notes == ["stage 'load' was never ended"]


@pytest.mark.parametrize("misbehaviour", ["silence", "another stage"])
def test_a_turn_that_does_not_come_ends_the_turns(
    misbehaviour: str, tmp_path: Path, job_under: JobUnder, capfd: pytest.CaptureFixture[str]
) -> None:
    def answer(line: str) -> "bytes | None":
        if not line.startswith("stage"):
            return None
        return b"" if misbehaviour == "silence" else b"go communication\n"

    with StandInAgent(tmp_path, answer=answer) as agent:
        job = job_under(agent, turn_timeout=0.2)
        for _ in range(5):
            with job.stage("load"):
                pass
        assert agent.wait_for(lambda: bool(agent.heard[0].notes))
        assert agent.heard[0].notes == [
            "no turn for stage 'load' within 0.2 s: the training goes on without turns"
        ]
        assert sum(line == "stage load" for line in agent.heard[0].lines) == 1
    assert capfd.readouterr().err.count("without turns") == 1


def test_a_supervisor_that_hangs_up_in_place_of_a_turn(
    tmp_path: Path, job_under: JobUnder
) -> None:
    agents: list[StandInAgent] = []

    def answer(line: str) -> "bytes | None":
        if line.startswith("stage"):
            agents[0].hang_up()
            return b""
        return None

    with StandInAgent(tmp_path, answer=answer) as agent:
        agents.append(agent)
        job = job_under(agent)
        with job.stage("load"):
            pass
        with job.stage("forward"):
            pass


STAGES = """
import sys, time
from trainyard.train import Job
job = Job()
sys.stdin.readline()
for step in range(int(sys.argv[1])):
    for stage in ("load", "forward", "communication"):
        with job.stage(stage):
            time.sleep(0.002)
    job.progress(step + 1)
job.finished()
"""


@pytest.mark.parametrize("jobs, workers", [(2, 1), (3, 1), (2, 2)])
def test_jobs_of_a_group_never_have_the_same_resource_at_once(
    jobs: int, workers: int, tmp_path: Path
) -> None:
    with StandInAgent(tmp_path, jobs=jobs, group=True, slot_timeout=60) as agent:
        processes = [
            subprocess.Popen([sys.executable, "-c", STAGES, "20"], stdin=subprocess.PIPE,
                             env=agent.variables(job, rank, workers))
            for job in range(jobs)
            for rank in range(workers)
        ]
        # A busy machine may start one so late that another has ended before it.
        assert agent.wait_for(lambda: all(len(job.programs) == workers for job in agent.heard))
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        assert [process.wait(TIMEOUT) for process in processes] == [0] * len(processes)
        assert agent.wait_for(lambda: all(heard.finished == workers for heard in agent.heard))
        assert agent.overlaps == []
        assert agent.late == 0
        for heard in agent.heard:
            assert sum(word == "go" for word, _ in heard.stages) == 60 * workers
            assert not heard.notes
        if workers == 1:  # workers of one job need not come in the same slot
            assert agent.slots < 60 * jobs  # jobs have had stages side by side


def test_a_job_that_dies_inside_a_stage_does_not_stop_the_group(tmp_path: Path) -> None:
    dies = "from trainyard.train import Job\nimport os\nwith Job().stage('load'):\n    os._exit(9)\n"
    with StandInAgent(tmp_path, jobs=2, group=True, slot_timeout=60) as agent:
        first = subprocess.Popen([sys.executable, "-c", dies], env=agent.variables(0))
        second = subprocess.Popen([sys.executable, "-c", STAGES, "5"],
                                  stdin=subprocess.DEVNULL, env=agent.variables(1))
        assert first.wait(TIMEOUT) == 9
        assert second.wait(TIMEOUT) == 0
        assert agent.wait_for(lambda: agent.heard[1].finished == 1)
