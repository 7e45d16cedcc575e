# SPDX-License-Identifier: Apache-2.0
"""What trainers do wrong, and what `trainyard status JOB` says of it: to people, and in JSON.

Run by pytest, with TRAINYARD_PROGRAM. One cluster of one node with two GPUs for all of it. Some
trainers wait for a file, so that what is said of them can be read as long as it holds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "scripts"))

from train_test.cluster import ENDED, Cluster, Shape  # noqa: E402

PATIENCE = 180.0  # seconds for anything to happen: a bound for hangs on a slow machine
GRACE = 3.0
LATER_VERSION = 2  # of the job protocol

# What every trainer begins with.
PRELUDE = """
import os, socket, sys, time
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.05)
"""
WITH_JOB = PRELUDE + """
from trainyard.train import Checkpoint, CheckpointError, DataLoader, Job
job = Job()
"""
# Without the library: who writes lines himself.
WITH_SOCKET = PRELUDE + """
supervisor = socket.socket(socket.AF_UNIX)
supervisor.connect(os.environ["TRAINYARD_SOCKET"])
answers = supervisor.makefile("rb")
def say(line):
    supervisor.sendall(line + b"\\n")
    return answers.readline()
"""


@dataclass(frozen=True)
class Said:
    """What `status JOB` says: the lines of its text by name, and the job of its JSON."""

    lines: dict[str, str]
    json: dict[str, Any]


@dataclass(frozen=True)
class Trainers:
    cluster: Cluster
    folder: Path  # in which trainers run

    def submit(self, script: str, *options: str, gpus: int = 1) -> int:
        words = ["--gpus", str(gpus), "--cwd", str(self.folder), "--env",
                 f"PYTHONPATH={SOURCE / 'python'}", "--env", "OMP_NUM_THREADS=1", *options]
        return int(self.cluster.call("submit", *words, "--", sys.executable, "-B", "-c",
                                     script)["job"])

    def said(self, job: int) -> Said:
        text = self.cluster.text("status", str(job))
        return Said({name: value.strip() for name, _, value in
                     (line.partition(":") for line in text.splitlines())},
                    self.cluster.status(job))

    def said_once(self, job: int, what: str, **wanted: Any) -> Said:
        """Once the values of the JSON are these (a text: a pattern that is found in it)."""

        def holds(status: dict[str, Any]) -> bool:
            return all(re.search(value, str(status[name])) if isinstance(value, str)
                       else status[name] == value for name, value in wanted.items())

        end = time.monotonic() + PATIENCE
        while not holds(self.cluster.status(job)):
            assert time.monotonic() < end, f"no {what}: {self.cluster.status(job)}"
            time.sleep(0.2)
        return self.said(job)

    def end(self, job: int) -> Said:
        """Once it has ended."""
        self.cluster.wait_for(lambda: self.cluster.status(job)["state"] in ENDED, PATIENCE,
                              f"the end of job {job}", pause=0.2)
        return self.said(job)

    def let_go_on(self, name: str) -> None:
        (self.folder / name).touch()


@pytest.fixture(scope="module")
def trainers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainers]:
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "work").mkdir()
    program = Path(os.environ.get("TRAINYARD_PROGRAM", SOURCE / "build" / "release" / "trainyard"))
    with Cluster(program, folder / "cluster", "fifo", Shape(nodes=1, gpus=2), grace=GRACE) as up:
        yield Trainers(up, folder / "work")
    assert up.leftovers == 0


# ---------------------------------------------------------------------------- wrong world size


def test_wrong_world_size(trainers: Trainers) -> None:
    """Two workers that have not initialised torch.distributed. Needs both GPUs, so comes first."""
    job = trainers.submit(WITH_JOB + "job.should_stop()", gpus=2)
    said = trainers.end(job)
    assert said.json["state"] == said.lines["state"] == "failed"
    assert said.json["exit_code"] == 1
    assert said.lines["reason"] == said.json["reason"]
    assert re.fullmatch(rf"worker ([01]) ended with exit code 1: .*WorldSizeError: .* "
                        rf"\(trainyard logs {job} --rank \1\)",
                        said.lines["reason"]), said
    assert re.match(r"rank [01] ended with WorldSizeError: .*needs all 2 workers, but "
                    r"torch.distributed is not initialised", said.lines["note"]), said
    assert said.json["note"] == said.lines["note"]


# ---------------------------------------------------------------------------------------- hang


@pytest.fixture(scope="module")
def hanging(trainers: Trainers) -> int:
    """A job that hangs. It takes a minute until it is late: let the others run meanwhile."""
    return trainers.submit(WITH_JOB + """
job.progress(1)
time.sleep(2)
job.progress(120)
wait_for("end-of-the-hang")
job.progress(121)
wait_for("end-of-the-job")
""")


# ---------------------------------------------------------------------------------- crash loop


def test_crash_loop(trainers: Trainers, hanging: int) -> None:
    assert trainers.cluster.status(hanging)["reason"] == ""
    job = trainers.submit(PRELUDE + "sys.exit(3)", "--max-restarts", "9")
    said = trainers.said_once(job, "third failure", failures=3)
    while not (said.json["state"] == said.lines["state"] == "waiting"
               and said.json["reason"] == said.lines["reason"] and "next try" in said.lines):
        assert said.json["failures"] < 9, said  # else it was between two statuses each time
        time.sleep(0.2)
        said = trainers.said(job)
    failures = said.json["failures"]
    assert said.json["reason"] == (f"waits {2 ** (failures - 1)} s after failure {failures} in a "
                                   f"row: worker 0 ended with exit code 3 (trainyard logs {job} "
                                   "--rank 0)")
    assert said.json["last_failure"] == 3
    assert said.json["next_try"] > said.json["submitted"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in \S+\)", said.lines["next try"]), said
    assert said.lines["failures"] == (f"{failures} of its own, the last with exit code 3; "
                                      f"{9 - failures} more restarts")
    trainers.cluster.call("cancel", str(job))


# ------------------------------------------------------------------------------ ignored notice


def test_ignored_notice(trainers: Trainers) -> None:
    """With the library: the job is told of it while it goes on, and afterwards."""
    job = trainers.submit(WITH_JOB + """
job.checkpointed(40)
for step in range(41, 100000):
    job.progress(step)
    time.sleep(0.05)
""")
    trainers.said_once(job, "progress", iterations_done="^4[1-9]|^[5-9]")
    trainers.cluster.resize(job, 2)  # it gives its GPU back, and waits for two
    going = trainers.said_once(job, "note", state="stopping", note="^notice is ignored")
    assert re.fullmatch(r"had notice \S+ ago: it saves itself and leaves, or is killed after 3.0s",
                        going.json["reason"])
    assert "what comes after iteration 40 is lost" in going.json["note"]
    gone = trainers.said_once(job, "end", state="waiting", note="was killed")
    assert re.fullmatch(
        r"did not leave within [3-9] s of its notice and was killed: what came after its "
        r"checkpoint of iteration 40 is lost; a job that heeds SIGTERM or 'stop' saves a "
        r"checkpoint and leaves", gone.lines["note"]), gone
    trainers.cluster.call("cancel", str(job))


def test_ignored_notice_without_the_library(trainers: Trainers) -> None:
    job = trainers.submit(PRELUDE + """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("deaf", "w").close()
wait_for("never")
""")
    trainers.cluster.wait_for((trainers.folder / "deaf").exists, PATIENCE, "the trainer")
    trainers.cluster.call("cancel", str(job))
    said = trainers.said_once(job, "note", note="was killed")
    assert said.lines["state"] == "cancelled"
    assert re.match(r"did not leave within [3-9] s of its notice and was killed: no checkpoint is "
                    r"known of; ", said.lines["note"]), said
    assert said.json["note"] == said.lines["note"]


# -------------------------------------------------------------------------- damaged checkpoint

DAMAGES = WITH_JOB + """
import torch
checkpoint = Checkpoint(job, model=torch.nn.Linear(2, 1))
if checkpoint.restore() == 0:
    for iteration in saves:
        checkpoint.save(iteration)
    for folder in checkpoint.folder.glob("checkpoint-*"):
        if folder.name.startswith(damaged):
            (folder / "state.pt").write_bytes(b"half")
    sys.exit(1)
"""


def test_damaged_checkpoint(trainers: Trainers) -> None:
    job = trainers.submit("saves, damaged = (10, 20), 'checkpoint-000000000020'\n" + DAMAGES,
                          "--max-restarts", "1")
    said = trainers.end(job)
    assert (said.json["state"], said.json["attempt"]) == ("completed", 2)
    assert re.fullmatch(r"checkpoint 20 is damaged \(state.pt has 4 bytes instead of \d+\); goes "
                        r"on from the one of iteration 10", said.lines["note"]), said
    assert said.json["note"] == said.lines["note"]


def test_no_checkpoint_is_whole(trainers: Trainers) -> None:
    job = trainers.submit("saves, damaged = (10,), 'checkpoint-'\n" + DAMAGES,
                          "--max-restarts", "1")
    said = trainers.end(job)
    assert (said.json["state"], said.json["attempt"]) == ("failed", 2)
    assert re.match(r"rank 0 ended with CheckpointError: no checkpoint in \S+ can be used; the "
                    r"last one: state.pt has 4 bytes", said.lines["note"]), said


# ----------------------------------------------------------------------------------- full disk


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A disk of 64 KiB at the folder; False: it may not be mounted, and the folder is any other."""
    folder.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_full_disk(trainers: Trainers) -> None:
    """It trains on, and its next checkpoint is written once there is room."""
    folder = trainers.folder / "disk"
    with small_disk(folder) as mounted:
        job = trainers.submit(f"mounted = {mounted}\n" + WITH_JOB + """
import pathlib, resource, signal, torch
if not mounted:  # a file that may not grow is much like a full disk
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, hard))
loader = DataLoader(list(range(8)), batch_size=2, job=job)
checkpoint = Checkpoint(job, model=torch.nn.Linear(200, 200), loader=loader,
                        folder=pathlib.Path("disk"))
for _ in checkpoint.steps(epochs=1, every=1):
    if loader.iterations == 3:
        wait_for("room")
        if not mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
""")
        said = trainers.said_once(job, "note", note="checkpoint 2 not written")
        assert said.json["state"] == "running"
        why = "No space left on device" if mounted else "File too large"
        assert said.lines["note"] == said.json["note"] == (
            f"checkpoint 2 not written to disk: {why}; there is none before")
        row = next(line for line in trainers.cluster.text("status").splitlines()
                   if line.startswith(f"{job} "))
        assert row.endswith(said.json["note"])  # the list shows it, too
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)
        trainers.let_go_on("room")
        assert trainers.end(job).json["state"] == "completed"
        assert (folder / "checkpoint-000000000004.1" / "state.pt").exists()


# ------------------------------------------------------------------------------------ NaN loss


def test_nan_loss_stops_the_job(trainers: Trainers) -> None:
    job = trainers.submit(WITH_JOB + "job.checkpointed(7)\njob.loss(float('nan'))")
    said = trainers.end(job)
    assert said.json["state"] == said.lines["state"] == "failed"
    assert said.lines["note"] == said.json["note"] == (
        "rank 0 ended with NonFiniteLoss: the loss is nan on rank 0: stopped; the last checkpoint "
        'is of iteration 7; Job(on_nan="continue") would go on')


def test_nan_loss_is_gone_on_with(trainers: Trainers) -> None:
    job = trainers.submit(WITH_JOB + """
job = Job(on_nan="continue")
for step in (1, 2, 3):
    job.loss(float("inf"))
job.finished()
""")
    said = trainers.end(job)
    assert said.json["state"] == "completed"
    assert said.lines["note"] == said.json["note"] == (
        "the loss is inf on rank 0 (2 so far): goes on")


# ---------------------------------------------------------------------------- protocol garbage


def test_protocol_garbage(trainers: Trainers) -> None:
    job = trainers.submit(WITH_SOCKET + """
say(b"note \\xff\\xfe")
assert say(b"epoch 3 done\\x1b[31m").startswith(b"error: ")
wait_for("garbage-was-seen")
assert say(b"lease?") == b"lease ok\\n"
""")
    said = trainers.said_once(job, "note", note="^said 2 lines")
    assert said.json["state"] == "running"
    assert said.lines["note"] == said.json["note"] == (
        "said 2 lines that were not understood, the last 'epoch 3 done?[31m': expected hello, "
        "progress, checkpoint, metric, stage, end, note, finished, lease? or no-signals")
    trainers.let_go_on("garbage-was-seen")
    assert trainers.end(job).json["state"] == "completed"


# ------------------------------------------------------------------------- a stage never ended


@pytest.mark.parametrize("ending, state, note", [
    ("", "completed", r"stage 'forward' was never ended"),
    ("job.check_stages_ended()", "failed",
     r"rank 0 ended with StageError: stage 'forward' has not ended by the end of the iteration: "
     r"other jobs wait for its end; .*"),
    ("job.stage('load').__enter__()", "failed",
     r"rank 0 ended with StageError: stage 'load' begins, but stage 'forward' has not ended: .*"),
], ids=["at-the-end", "after-an-iteration", "before-another"])
def test_a_stage_never_ended(trainers: Trainers, ending: str, state: str, note: str) -> None:
    job = trainers.submit(
        WITH_JOB + f"stage = job.stage('forward')\nstage.__enter__()\njob.progress(1)\n{ending}\n")
    said = trainers.end(job)
    assert said.json["state"] == said.lines["state"] == state
    assert re.fullmatch(note, said.lines["note"]), said
    assert said.json["note"] == said.lines["note"]


# ------------------------------------------------------------------ a library of another version


def test_a_library_of_another_version(trainers: Trainers) -> None:
    job = trainers.submit(WITH_SOCKET + f"""
assert say(b"hello {LATER_VERSION} trainyard-python/9.1.0") == b"hello 1\\n"
assert say(b"teleport 3").startswith(b"error: ")
""")
    said = trainers.end(job)
    assert said.json["state"] == "completed"
    assert said.lines["note"] == said.json["note"] == (
        f"trainyard-python/9.1.0 speaks version {LATER_VERSION} of the job protocol, this node "
        "version 1: what is newer has no effect")


# ------------------------------------------------------------------------- the end of the hang


def test_hang(trainers: Trainers, hanging: int) -> None:
    said = trainers.said_once(hanging, "reason", reason="^no progress for ")
    assert said.json["state"] == said.lines["state"] == "running"
    for reason in (said.lines["reason"], said.json["reason"]):
        assert re.fullmatch(r"no progress for \d+m\d\ds \(iteration 120\)", reason), said
    assert re.fullmatch(r"120, 0 of them saved, the last \d+m\d\ds ago", said.lines["iterations"]), said
    assert said.json["progressed"] > said.json["started"]
    trainers.let_go_on("end-of-the-hang")
    again = trainers.said_once(hanging, "recovery", iterations_done=121)
    assert again.lines["reason"] == "-"
    assert again.json["reason"] == ""
    trainers.let_go_on("end-of-the-job")
    assert trainers.end(hanging).json["state"] == "completed"
