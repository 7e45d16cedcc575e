# SPDX-License-Identifier: Apache-2.0
"""Job: who it is, notice, reports, and what goes wrong at the other side."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from conftest import TIMEOUT
from stand_in_agent import StandInAgent

from trainyard import __version__
from trainyard.train import Job, Lease, NonFiniteLoss, Share, WorldSizeError

JobUnder = Callable[..., Job]


# ----------------------------------------------------------------------------- without an agent


def test_without_an_agent_every_call_is_a_no_op(job: Job) -> None:
    assert (job.rank, job.world_size, job.local_rank, job.local_world_size) == (0, 1, 0, 1)
    assert (job.node_rank, job.attempt, job.checkpoint_dir) == (0, 0, None)
    assert job.notice is None
    assert not job.should_stop()
    assert job.lease() == Lease(True)
    assert job.share == Share()
    job.progress(1)
    job.checkpointed(1)
    job.metric("x", 1.0)
    job.note("text")
    assert job.loss(2.5) == 2.5
    with job.stage("load"):
        pass
    job.finished()


def test_torchrun_s_variables_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                        "GROUP_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    job = Job()
    assert (job.rank, job.world_size, job.local_rank, job.node_rank) == (3, 4, 1, 1)


@pytest.mark.parametrize("name, value", [("WORLD_SIZE", "two"), ("WORLD_SIZE", "0"),
                                         ("RANK", "-1")])
def test_a_variable_that_is_no_number_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name}='{value}'"):
        Job()


def test_a_rank_outside_of_the_world_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(WorldSizeError, match="RANK is 2, but WORLD_SIZE is 2"):
        Job()


def test_should_stop_of_several_ranks_needs_their_process_group(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(WorldSizeError, match="init_process_group"):
        Job().should_stop()


def test_wrong_options_are_refused() -> None:
    for options in ({"on_nan": "panic"}, {"resize": "grow"}, {"agree_every": 0}):
        with pytest.raises(ValueError):
            Job(**options)  # type: ignore[arg-type]


def test_sigterm_is_a_notice_without_a_known_end(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    assert job.notice == math.inf
    assert job.should_stop()
    assert job.lease() == Lease(False, None)


def test_a_script_survives_sigterm_from_its_first_line_on() -> None:
    script = (
        "from trainyard.train import Job\njob = Job()\nprint('up', flush=True)\n"
        "import time\nwhile job.notice is None: time.sleep(0.01)\nprint('left')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, output) == (0, "left\n")
    assert "notice: the job is to save a checkpoint and leave" in errors


# -------------------------------------------------------------------------------- with an agent


def test_the_job_says_hello_first_and_then_its_reports(
    agent: StandInAgent, job_under: JobUnder
) -> None:
    job = job_under(agent)
    job.progress(7)
    job.metric("acc", 0.5)
    job.loss(2.25)
    job.checkpointed(7)
    job.note("a word")
    job.finished()
    heard = agent.heard[0]
    assert agent.wait_for(lambda: heard.finished == 1 and bool(heard.notes))
    assert heard.lines[0] == f"hello 1 trainyard-python/{__version__}"
    assert (heard.progress, heard.checkpoint) == (7, 7)
    assert heard.metrics == {"acc": 0.5, "loss": 2.25}
    assert heard.notes == ["a word"]


def test_a_stop_line_is_a_notice_with_its_time(agent: StandInAgent, job_under: JobUnder) -> None:
    job = job_under(agent)
    agent.wait_for(lambda: bool(agent.heard[0].lines))
    assert job.lease() == Lease(True)
    agent.stop(1000)
    assert agent.wait_for(lambda: job.notice is not None)
    assert job.notice is not None and 0 < job.notice <= 1000
    agent.stop(500)
    assert agent.wait_for(lambda: (job.notice or 0) <= 500)
    assert job.lease() == Lease(False, 500)
    assert job.should_stop()


def test_a_tune_line_states_the_whole_share(
    agent: StandInAgent, job_under: JobUnder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINYARD_CPUS", "3.5")
    monkeypatch.setenv("TRAINYARD_LOADER_WORKERS", "2")
    monkeypatch.setenv("TRAINYARD_MEMORY_MIB", "much")
    job = job_under(agent)
    assert job.share == Share(cpus=3.5, loader_workers=2)
    told: list[Share] = []
    job.on_share(told.append)
    agent.wait_for(lambda: bool(agent.heard[0].lines))
    agent.tune(loader_workers=4)
    assert agent.wait_for(lambda: job.share == Share(loader_workers=4))
    assert told == [Share(loader_workers=4)]


def test_a_supervisor_of_version_0_gets_neither_notes_nor_stages(
    tmp_path: Path, job_under: JobUnder, capfd: pytest.CaptureFixture[str]
) -> None:
    with StandInAgent(tmp_path, version=0) as agent:
        job = job_under(agent)
        job.note("not for 0.1.0")
        with job.stage("load"):
            job.progress(1)
        job.close()
        assert agent.wait_for(lambda: agent.heard[0].progress == 1)
        words = [line.split()[0] for line in agent.heard[0].lines]
    assert words == ["hello", "progress"]
    errors = capfd.readouterr().err
    assert "trainyard: not for 0.1.0" in errors
    assert "did not understand" not in errors


def test_a_supervisor_of_a_later_version_is_spoken_to_in_ours(
    tmp_path: Path, job_under: JobUnder
) -> None:
    with StandInAgent(tmp_path, version=7) as agent:
        job = job_under(agent)
        with job.stage("forward"):
            pass
        job.note("still understood")
        assert agent.wait_for(lambda: agent.heard[0].notes == ["still understood"])
        assert agent.heard[0].stages == [("go", "forward"), ("end", "forward")]


def test_garbage_is_ignored_with_a_clear_line_and_what_follows_is_heard(
    agent: StandInAgent, job_under: JobUnder, capfd: pytest.CaptureFixture[str]
) -> None:
    job = job_under(agent)
    agent.wait_for(lambda: bool(agent.heard[0].lines))
    agent.say(b"\xff\xfe\x00\n" + b"x" * 50000 + b"\n" + b"stop soon\n" * 1000 + b"go nowhere\n")
    agent.stop(60)
    assert agent.wait_for(lambda: job.notice is not None)
    job.progress(1)
    assert agent.wait_for(lambda: agent.heard[0].progress == 1)
    errors = capfd.readouterr().err
    assert "ignored a line of the supervisor" in errors
    assert "4096 bytes" in errors
    assert errors.count("ignored a line") == 3
    assert "further lines that are not of the protocol are ignored" in errors


def test_a_supervisor_that_hangs_up_is_told_of_once_and_the_job_goes_on(
    agent: StandInAgent, job_under: JobUnder, capfd: pytest.CaptureFixture[str]
) -> None:
    job = job_under(agent)
    agent.wait_for(lambda: bool(agent.heard[0].lines))
    agent.hang_up()
    for step in range(10):
        job.progress(step)
        assert job.notice is None
    with job.stage("load"):
        pass
    assert job.lease() == Lease(True)
    os.kill(os.getpid(), signal.SIGTERM)
    assert job.should_stop()
    assert capfd.readouterr().err.count("the training goes on without reports") == 1


def test_a_notice_that_came_just_before_the_end_of_the_connection_is_heard(
    agent: StandInAgent, job_under: JobUnder
) -> None:
    job = job_under(agent)
    agent.wait_for(lambda: bool(agent.heard[0].lines))
    agent.stop(60)
    agent.hang_up()
    job.progress(1)
    job.progress(2)
    assert job.notice is not None


def test_a_socket_without_a_supervisor_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINYARD_SOCKET", str(tmp_path / "none.sock"))
    job = Job()
    job.progress(1)
    assert job.notice is None
    assert "no supervisor at TRAINYARD_SOCKET" in capfd.readouterr().err


def test_a_silent_supervisor_that_does_not_read_stops_nobody(
    tmp_path: Path, job_under: JobUnder, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("trainyard.train.supervisor._DRAIN_PATIENCE", 0.1)
    monkeypatch.setattr("trainyard.train.supervisor.LEASE_PATIENCE", 0.1)
    agent = StandInAgent(tmp_path)  # its thread is never started: it listens and does not accept
    job = job_under(agent)
    for step in range(20000):
        job.progress(step)
    job.checkpointed(5)
    assert job.lease() == Lease(True)
    assert capfd.readouterr().err.count("does not read") == 1
    job.close()
    agent._selector.close()


def test_a_refused_line_is_shown(
    tmp_path: Path, job_under: JobUnder, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(line: str) -> "bytes | None":
        return b"error: a job has 32 metrics at most\n" if line.startswith("metric") else None

    with StandInAgent(tmp_path, answer=refuse) as agent:
        job = job_under(agent)
        job.metric("x", 1)
        assert agent.wait_for(lambda: job.notice is None and job._supervisor.refusals == 1)
    assert "did not understand a line: a job has 32 metrics" in capfd.readouterr().err


def test_a_forked_process_has_no_part_in_the_talk(agent: StandInAgent, job_under: JobUnder) -> None:
    job = job_under(agent)
    child = os.fork()
    if child == 0:
        job.progress(99)
        job.close()
        os._exit(0 if not job._supervisor.is_there else 1)
    assert os.waitpid(child, 0)[1] == 0
    job.progress(1)
    assert agent.wait_for(lambda: agent.heard[0].progress == 1)
    assert "progress 99" not in agent.heard[0].lines


SPAWNS = """
from trainyard.train import DataLoader, Job
job = Job()
if __name__ == "__main__":
    loader = DataLoader([1, 2, 3], 2, job, workers=2, collate_fn=list, start_method="spawn")
    print(sum(map(len, loader.steps(1))))
    loader.close()
"""


def test_spawned_loader_workers_have_no_part_in_the_talk(
    agent: StandInAgent, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(SPAWNS)
    run = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True,
                         text=True, timeout=TIMEOUT, env=os.environ | agent.variables())
    assert (run.returncode, run.stdout) == (0, "3\n"), run.stderr
    assert len(agent.heard[0].programs) == 1


# --------------------------------------------------------------------- what trainers do wrong


def test_a_script_that_spawned_workers_would_run_again_is_told(tmp_path: Path) -> None:
    text = SPAWNS.replace('if __name__ == "__main__":', "if True:")
    (tmp_path / "script.py").write_text(text)
    run = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True,
                         text=True, timeout=TIMEOUT)
    assert run.returncode != 0
    assert "imported by a spawned loader worker" in run.stderr


def test_an_ignored_notice_is_noted_once(agent: StandInAgent, job_under: JobUnder) -> None:
    job = job_under(agent)
    job.checkpointed(40)
    agent.stop(60)
    assert agent.wait_for(lambda: job.notice is not None)
    for step in range(41, 60):
        job.progress(step)
    assert agent.wait_for(lambda: bool(agent.heard[0].notes))
    assert len(agent.heard[0].notes) == 1
    assert "notice is ignored" in agent.heard[0].notes[0]
    assert "after iteration 40 is lost" in agent.heard[0].notes[0]


@pytest.mark.parametrize("ending, expected", [
    ("job.should_stop()", "rank 1 ended with WorldSizeError: should_stop() "),
    ("raise ValueError('first\\n\\nmiddle\\nlast')", "rank 1 ended with ValueError: first ... last"),
    ("turn = job.stage('load'); turn.__enter__(); 1 / 0",
     "rank 1 ended with ZeroDivisionError: division by zero"),
])
def test_what_ends_the_script_is_noted(ending: str, expected: str, agent: StandInAgent) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from trainyard.train import Job\njob = Job()\n{ending}"],
        env=os.environ | agent.variables(0) | {"RANK": "1", "WORLD_SIZE": "2"},
        capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1 and "Traceback" in done.stderr
    assert agent.wait_for(lambda: bool(agent.heard[0].notes))
    assert [note[:len(expected)] for note in agent.heard[0].notes] == [expected]


def test_a_world_that_cannot_be_is_noted(agent: StandInAgent) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from trainyard.train import Job\nJob()"],
        env=os.environ | agent.variables(0) | {"RANK": "2", "WORLD_SIZE": "2"},
        capture_output=True, text=True, timeout=TIMEOUT)
    assert "ranks begin at 0" in done.stderr
    assert agent.wait_for(lambda: agent.heard[0].notes == [
        "rank 2 ended with WorldSizeError: RANK is 2, but WORLD_SIZE is 2: ranks begin at 0"])


def test_closing_gives_the_hook_for_exceptions_back() -> None:
    before = sys.excepthook
    job = Job()
    assert sys.excepthook is not before
    job.close()
    assert sys.excepthook is before


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_the_training(
    value: float, agent: StandInAgent, job_under: JobUnder
) -> None:
    job = job_under(agent)
    job.checkpointed(20)
    with pytest.raises(NonFiniteLoss, match="the last checkpoint is of iteration 20"):
        job.loss(value)
    assert agent.wait_for(lambda: bool(agent.heard[0].notes))
    assert "loss" not in agent.heard[0].metrics


def test_a_loss_that_is_not_finite_may_be_gone_on_with(
    agent: StandInAgent, job_under: JobUnder
) -> None:
    job = job_under(agent, on_nan="continue")
    for _ in range(100):
        assert math.isnan(job.loss(math.nan))
    assert job.loss(1.5) == 1.5
    assert agent.wait_for(lambda: agent.heard[0].metrics == {"loss": 1.5})
    assert 1 <= len(agent.heard[0].notes) <= 8


def test_one_metric_too_many_and_one_that_is_not_finite(
    job: Job, capfd: pytest.CaptureFixture[str]
) -> None:
    job.metric("bad", math.nan)
    assert "metric bad is nan: not reported" in capfd.readouterr().err
    for number in range(32):
        job.metric(f"m{number}", number)
    with pytest.raises(ValueError, match="32 names"):
        job.metric("m32", 0)
