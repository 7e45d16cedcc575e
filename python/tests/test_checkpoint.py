# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what comes back, and what goes wrong with them."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy
import pytest
from conftest import TIMEOUT, leave
from stand_in_agent import StandInAgent

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from trainyard.train import (  # noqa: E402
    Checkpoint,
    CheckpointError,
    DataLoader,
    Job,
    MismatchError,
    NonFiniteLoss,
    StageError,
)

JobUnder = Callable[..., Job]
SAMPLES, BATCH = 22, 4  # 6 batches in an epoch
NOBODY = 65534  # a user without rights


class Noisy:
    """Samples with noise: inputs [3], targets [1]."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> Any:
        inputs = torch.full((3,), index / SAMPLES) + 0.1 * torch.rand(3)
        return inputs, inputs.sum(dim=0, keepdim=True)


class Training:
    """A training whose result depends on everything that a checkpoint has to hold."""

    def __init__(self, job: Job, folder: Path, **options: Any) -> None:
        torch.set_num_threads(1)
        for seed in (torch.manual_seed, random.seed, numpy.random.seed):
            seed(5)
        width = options.pop("width", 6)
        data = options.pop("data", Noisy())
        self.job = job
        self.model = nn.Sequential(nn.Linear(3, width), nn.Dropout(0.3), nn.Linear(width, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=4, gamma=0.7)
        self.loader = DataLoader(data, BATCH, job, workers=options.pop("workers", 0), seed=2)
        self.checkpoint = Checkpoint(
            job, model=self.model, optimizer=self.optimizer, scheduler=self.scheduler,
            loader=self.loader, folder=folder, **options,
        )

    def step(self, batch: Any) -> float:
        inputs, targets = batch
        noise = random.random() + numpy.random.rand()  # the trainer's own draws
        loss = nn.functional.mse_loss(self.model(inputs), targets + 0.01 * noise)
        self.optimizer.zero_grad()
        self.loader.scale_loss(loss).backward()
        self.optimizer.step()
        self.scheduler.step()
        return float(loss.detach())

    def run(self, epochs: int = 3, every: int = 100, at: Callable[[int], None] = lambda n: None,
            ) -> int:
        """Trains; `at` is called in each step with the iteration. How many steps it has been."""
        steps = 0
        for batch in self.checkpoint.steps(epochs, every=every):
            self.step(batch)
            at(self.loader.iterations)
            steps += 1
        return steps

    def state(self) -> Any:
        parts = [one.detach().flatten() for one in self.model.parameters()]
        rate = torch.tensor([self.optimizer.param_groups[0]["lr"]])
        return torch.cat([*parts, rate, torch.rand(2), torch.tensor([random.random()])])


def notice_at(*iterations: int) -> Callable[[int], None]:
    def give(now: int) -> None:
        if now in iterations:
            os.kill(os.getpid(), signal.SIGTERM)

    return give


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def checkpoints_of(folder: Path) -> list[int]:
    return sorted(int(path.name[11:23]) for path in folder.glob("checkpoint-*"))


def trained(folder: Path, *iterations: int) -> None:
    """Checkpoints of these iterations."""
    job = Job()
    training = Training(job, folder, keep=len(iterations))
    for iteration in iterations:
        training.checkpoint.save(iteration)
    job.close()


# ------------------------------------------------------------------------------- what comes back


@pytest.mark.parametrize("stops", [(1,), (5,), (6,), (7,), (2, 9, 17)])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_goes_on_after_notice_bit_by_bit_as_if_there_had_been_none(
    stops: tuple[int, ...], workers: int, tmp_path: Path
) -> None:
    undisturbed = Training(Job(), tmp_path / "undisturbed", workers=workers)
    assert undisturbed.run() == 18
    expected = undisturbed.state()
    steps = []
    for _ in range(len(stops) + 1):
        attempt = Training(Job(), tmp_path / "disturbed", workers=workers)
        steps.append(attempt.run(at=notice_at(*stops)))
    assert sum(steps) == 18
    assert torch.equal(attempt.state(), expected)


def test_what_is_reported_and_the_end(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    training = Training(job_under(agent), tmp_path)
    agent.wait_for(lambda: bool(agent.heard[0].lines))
    training.run(every=5, at=lambda now: agent.stop(60) if now == 8 else None)
    heard = agent.heard[0]
    assert agent.wait_for(lambda: heard.checkpoint >= 8)
    assert heard.finished == 0
    agent._stop_seconds[0] = None
    training = Training(job_under(agent), tmp_path)
    training.run(every=5)
    leave(training.job)
    assert agent.wait_for(lambda: heard.finished == 1)
    assert (heard.progress, heard.checkpoint) == (18, 18)
    assert "checkpoint 5" in heard.lines
    assert heard.notes == []


def test_a_training_that_is_done_says_so_again_and_makes_no_step(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    for steps in (6, 0):
        training = Training(job_under(agent), tmp_path)
        assert training.run(epochs=1) == steps
        assert training.checkpoint.finished
        leave(training.job)
    assert agent.wait_for(lambda: agent.heard[0].finished == 2)
    assert Training(job_under(agent), tmp_path).run(epochs=2) == 6


def test_a_training_ends_after_the_greatest_number_of_iterations(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    first = Training(job_under(agent), tmp_path)
    seen = [first.loader.iterations for _ in first.checkpoint.steps(3, 100, max_iterations=8)]
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8]
    assert checkpoints_of(tmp_path)[-1] == 8
    assert first.checkpoint.finished
    leave(first.job)
    assert agent.wait_for(lambda: agent.heard[0].finished == 1)
    again = Training(job_under(agent), tmp_path)
    assert [again.loader.iterations for _ in again.checkpoint.steps(3, max_iterations=8)] == []
    more = Training(job_under(agent), tmp_path)
    assert sum(1 for _ in more.checkpoint.steps(2, max_iterations=100)) == 4  # the epochs end first
    with pytest.raises(ValueError, match="max_iterations is at least 1, not 0"):
        next(more.checkpoint.steps(3, max_iterations=0))


@pytest.mark.parametrize("keep", [1, 3])
def test_the_latest_checkpoints_stay(keep: int, tmp_path: Path) -> None:
    Training(Job(), tmp_path, keep=keep).run(every=2)
    assert checkpoints_of(tmp_path) == [14, 16, 18][-keep:]
    assert all(name.startswith("checkpoint-") for name in names(tmp_path))


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, int]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.count = state["count"]


def test_further_objects_are_saved(tmp_path: Path) -> None:
    counter = Counter()
    training = Training(Job(), tmp_path, extra={"counter": counter})
    counter.count = 7
    training.checkpoint.save(3)
    again = Counter()
    assert Training(Job(), tmp_path, extra={"counter": again}).checkpoint.restore() == 3
    assert again.count == 7
    with pytest.raises(MismatchError, match="no 'other': it is of another training"):
        Training(Job(), tmp_path, extra={"other": again}).checkpoint.restore()


def test_save_and_restore_without_a_loader(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    checkpoint = Checkpoint(Job(), model=model, folder=tmp_path)
    assert checkpoint.restore() == 0
    with pytest.raises(ValueError, match="needs the iterations"):
        checkpoint.save()
    checkpoint.save(40)
    other = nn.Linear(2, 1)
    assert Checkpoint(Job(), model=other, folder=tmp_path).restore() == 40
    assert torch.equal(model.weight, other.weight)
    with pytest.raises(ValueError, match="needs the loader"):
        next(checkpoint.steps(1))


# --------------------------------------------------------------------------- damaged checkpoints


def truncate(folder: Path) -> None:
    path = folder / "state.pt"
    path.write_bytes(path.read_bytes()[:-100])


def flip(folder: Path) -> None:
    path = folder / "state.pt"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(folder: Path) -> None:
    (folder / "state.pt").write_bytes(b"")


def no_state(folder: Path) -> None:
    (folder / "state.pt").unlink()


def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def no_json(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"\0" * 40)


DAMAGES = [truncate, flip, empty, no_state, no_manifest, no_json]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_noted_and_the_one_before_taken(
    damage: Callable[[Path], None], agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints"
    trained(folder, 10, 20)
    damage(next(folder.glob("*20.1")))
    training = Training(job_under(agent), folder)
    assert training.checkpoint.restore() == 10
    assert agent.wait_for(lambda: bool(agent.heard[0].notes))
    assert agent.heard[0].notes[0].startswith("checkpoint 20 is damaged (")
    assert agent.heard[0].notes[0].endswith("goes on from the one of iteration 10")
    training.checkpoint.save(15)  # and what is saved next is the last one
    assert Training(job_under(agent), folder).checkpoint.restore() == 15
    assert checkpoints_of(folder) == [10, 15]


def test_only_damaged_checkpoints_are_an_error_and_stay_where_they_are(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints"
    trained(folder, 10, 20)
    for path in folder.iterdir():
        flip(path)
    before = names(folder)
    with pytest.raises(CheckpointError, match="can be used.*Move them away to begin anew"):
        Training(job_under(agent), folder).checkpoint.restore()
    assert names(folder) == before
    assert agent.wait_for(lambda: len(agent.heard[0].notes) == 1)


SAVES = """
import sys, torch
from pathlib import Path
from trainyard.train import Checkpoint, Job
model = torch.nn.Linear(200, 200)
checkpoint = Checkpoint(Job(), model=model, folder=Path(sys.argv[1]), keep=2)
done = checkpoint.restore()
assert done == 0 or model.bias[0].item() == done, (done, model.bias[0].item())
print("restored", done, flush=True)
while True:
    done += 1
    with torch.no_grad():
        model.bias.fill_(done)
    checkpoint.save(done)
    print("saved", done, flush=True)
"""


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    draw = random.Random(1)
    told = 0
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVES, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        word, number = process.stdout.readline().split()
        # What was told is there; what was not told yet may be there, too.
        assert word == "restored" and told <= int(number) <= told + 1
        for _ in range(draw.randrange(1, 12)):
            told = int(process.stdout.readline().split()[1])
        signal.sigtimedwait([], draw.random() * 0.01)  # type: ignore[arg-type]
        process.kill()
        for line in process.stdout.read().splitlines():
            told = int(line.split()[1])
        process.wait(TIMEOUT)
    assert checkpoints_of(tmp_path)[-1] >= told > 0


# ------------------------------------------------------------------------------------- full disks


def fail_in(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The disk is full for so many attempts to write."""
    left = [times]
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr("trainyard.train.store.os.fsync", fsync)


def test_a_full_disk_is_noted_and_the_training_goes_on(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkpoints"
    training = Training(job_under(agent), folder)
    training.run(every=4, at=lambda now: fail_in(monkeypatch, 1) if now == 8 else None)
    leave(training.job)
    assert agent.wait_for(lambda: agent.heard[0].finished == 1)
    (note,) = agent.heard[0].notes
    assert note.startswith("checkpoint 8 not written to ")
    assert note.endswith("No space left on device; 4 is kept")
    assert "checkpoint 8" not in agent.heard[0].lines
    assert checkpoints_of(folder) == [16, 18]


def test_a_disk_that_is_full_at_the_end_is_an_error(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkpoints"
    training = Training(job_under(agent), folder)
    with pytest.raises(CheckpointError, match="checkpoint 18 not written .* 12 is kept"):
        training.run(every=6, at=lambda now: fail_in(monkeypatch, 9) if now == 18 else None)
    assert agent.heard[0].finished == 0
    assert checkpoints_of(folder) == [6, 12]


LIMITED = """
import resource, sys, torch
from pathlib import Path
from trainyard.train import Checkpoint, CheckpointError, Job
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
checkpoint = Checkpoint(Job(), model=torch.nn.Linear(100, 100), folder=Path(sys.argv[1]))
try:
    checkpoint.save(1)
except CheckpointError as error:
    print(error)
"""


def test_a_write_that_the_system_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True,
                         text=True, timeout=TIMEOUT)
    assert run.returncode == 0, run.stderr
    assert run.stdout == (
        f"checkpoint 1 not written to {tmp_path}: File too large; there is none before\n"
    )
    assert names(tmp_path) == []


# --------------------------------------------------------------------- what trainers do wrong


def test_a_checkpoint_of_another_dataset_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, 10)
    data = torch.utils.data.TensorDataset(torch.zeros(9, 3), torch.zeros(9, 1))
    with pytest.raises(MismatchError, match="9 samples in the dataset, its saved state 22"):
        Training(Job(), tmp_path, data=data).checkpoint.restore()


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, 10)
    with pytest.raises(MismatchError, match="the model of the checkpoint does not fit"):
        Training(Job(), tmp_path, width=7).checkpoint.restore()


def test_a_checkpoint_of_a_later_library_is_refused_and_left_alone(tmp_path: Path) -> None:
    trained(tmp_path, 10, 20)
    path = next(tmp_path.glob("*20.1")) / "manifest.json"
    manifest = json.loads(path.read_text()) | {"format": 2, "library": "7.0.0"}
    path.write_text(json.dumps(manifest))
    before = names(tmp_path)
    with pytest.raises(MismatchError, match="written by trainyard 7.0.0, in format 2;.* install"):
        Training(Job(), tmp_path).checkpoint.restore()
    assert names(tmp_path) == before


def test_a_loss_that_is_not_finite_leaves_the_last_checkpoint(
    agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    job = job_under(agent)
    training = Training(job, tmp_path / "checkpoints")
    with pytest.raises(NonFiniteLoss, match="the last checkpoint is of iteration 5"):
        for batch in training.checkpoint.steps(3, every=5):
            loss = training.step(batch)
            job.loss(float("nan") if training.loader.iterations == 7 else loss)
    assert checkpoints_of(tmp_path / "checkpoints") == [5]
    assert agent.heard[0].finished == 0


def test_a_stage_that_is_open_at_the_end_of_an_iteration_is_an_error(tmp_path: Path) -> None:
    job = Job()
    training = Training(job, tmp_path)
    with pytest.raises(StageError, match="'forward' has not ended by the end of the iteration"):
        for _ in training.checkpoint.steps(1):
            forgotten = job.stage("forward")
            forgotten.__enter__()


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="a Checkpoint needs the model"):
        Checkpoint(Job())
    with pytest.raises(ValueError, match="keep is at least 1"):
        Checkpoint(Job(), model=model, keep=0)
    with pytest.raises(ValueError, match="scale_lr needs the loader"):
        Checkpoint(Job(), model=model, scale_lr=True)
    with pytest.raises(ValueError, match="every is at least 1"):
        next(Training(Job(), tmp_path).checkpoint.steps(1, every=0))


def test_a_folder_that_may_not_be_written_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:  # that another user may look into
        Path(folder).chmod(0o555)
        user = os.geteuid()
        try:
            if user == 0:  # who may write anywhere
                os.seteuid(NOBODY)
            with pytest.raises(CheckpointError, match="Permission denied; there is none before"):
                Checkpoint(Job(), model=nn.Linear(1, 1), folder=Path(folder) / "deep").save(1)
        finally:
            os.seteuid(user)


def test_a_folder_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checkpoint = Checkpoint(Job(), model=nn.Linear(1, 1), folder=tmp_path / "file")
    with pytest.raises(CheckpointError, match="File exists|Not a directory"):
        checkpoint.save(1)


def test_drafts_of_a_writer_that_was_killed_are_removed(tmp_path: Path) -> None:
    trained(tmp_path, 10)
    shutil.copytree(next(tmp_path.glob("*10.1")), tmp_path / ".draft-checkpoint-000000000020.1")
    training = Training(Job(), tmp_path)
    assert training.checkpoint.restore() == 10
    training.checkpoint.save(12)
    assert checkpoints_of(tmp_path) == [10, 12]
    assert len(names(tmp_path)) == 2
