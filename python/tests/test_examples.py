# SPDX-License-Identifier: Apache-2.0
"""The examples of the repository: the DDP script, and callbacks in stand-ins for frameworks."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterator

import pytest
from conftest import Ranks, leave
from stand_in_agent import StandInAgent

torch = pytest.importorskip("torch")
import stand_in_frameworks  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import Dataset, TensorDataset  # noqa: E402

from trainyard.train import DataLoader, Job, NonFiniteLoss, WorldSizeError  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="without the repository's examples")
JobUnder = Callable[..., Job]

SAMPLES, BATCH, EPOCHS = 41, 8, 3
STEPS = EPOCHS * 6


def load_example(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLES / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def frameworks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch.set_num_threads(1)
    for name, module in stand_in_frameworks.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    yield


class Model(nn.Module):
    """A model that trains itself. `at_step` is called before each step with its number."""

    def __init__(self, at_step: Callable[[int], None] = lambda step: None) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        self._at_step = at_step
        self.steps = 0

    def train_batch(self, batch: Any) -> Any:
        self.steps += 1
        self._at_step(self.steps)
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.net(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def parameters_now(self) -> Any:
        return torch.cat([one.detach().flatten() for one in self.parameters()])


def dataset(targets: float = 1.0) -> Dataset[Any]:
    inputs = torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(1))
    return TensorDataset(inputs, targets * inputs.sum(dim=1, keepdim=True))


def notice_at(step: int) -> Callable[[int], None]:
    return lambda now: os.kill(os.getpid(), signal.SIGTERM) if now == step else None


# ------------------------------------------------------------------------------------- Lightning


def lightning(job: Job, model: Model, folder: Path, data: Any = None, every: int = 1000) -> None:
    example = load_example("lightning-callback/trainyard_lightning.py")
    loader = DataLoader(data or dataset(), batch_size=BATCH, job=job, seed=1)
    batches = example.EpochLoader(loader, batches=6)
    callback = example.trainyard_callback(job, folder, loader=batches, every=every, loss_every=1)
    trainer = stand_in_frameworks.LightningTrainer(max_epochs=EPOCHS, callbacks=[callback])
    trainer.fit(model, batches, ckpt_path=example.last_checkpoint(folder))
    leave(job)


@pytest.mark.parametrize("step", [4, 6, 11])
def test_a_lightning_training_goes_on_after_notice_as_if_there_had_been_none(
    step: int, agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    undisturbed = Model()
    lightning(job_under(agent), undisturbed, tmp_path / "undisturbed")
    first = Model(notice_at(step))
    lightning(job_under(agent), first, tmp_path / "disturbed")
    assert first.steps == step
    assert agent.wait_for(lambda: agent.heard[0].checkpoint == step)
    second = Model()
    lightning(job_under(agent), second, tmp_path / "disturbed")
    assert second.steps == STEPS - step
    assert torch.equal(second.parameters_now(), undisturbed.parameters_now())
    assert agent.wait_for(lambda: agent.heard[0].finished == 2)
    assert agent.heard[0].progress == STEPS
    assert agent.heard[0].metrics["loss"] > 0


def test_a_lightning_training_keeps_two_checkpoints(job: Job, tmp_path: Path) -> None:
    lightning(job, Model(), tmp_path, every=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-16.ckpt", "step-18.ckpt"]


def test_a_lightning_training_stops_at_a_loss_that_is_not_finite(job: Job, tmp_path: Path) -> None:
    with pytest.raises(NonFiniteLoss):
        lightning(job, Model(), tmp_path, data=dataset(float("nan")))


# ---------------------------------------------------------------------------------- Hugging Face


def hugging_face(job: Job, model: Model, folder: Path, data: Any = None) -> None:
    example = load_example("huggingface-trainer/trainyard_huggingface.py")
    arguments = stand_in_frameworks.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=example.batch_of_device(BATCH, job),
        num_train_epochs=EPOCHS,
        save_steps=5,
    )
    trainer = stand_in_frameworks.HuggingFaceTrainer(
        model, arguments, data or dataset(), callbacks=[example.trainyard_callback(job)]
    )
    trainer.train(resume_from_checkpoint=example.last_checkpoint(folder))
    leave(job)


@pytest.mark.parametrize("step", [4, 6, 11])
def test_a_hugging_face_training_goes_on_after_notice_as_if_there_had_been_none(
    step: int, agent: StandInAgent, job_under: JobUnder, tmp_path: Path
) -> None:
    undisturbed = Model()
    hugging_face(job_under(agent), undisturbed, tmp_path / "undisturbed")
    first = Model(notice_at(step))
    hugging_face(job_under(agent), first, tmp_path / "disturbed")
    assert first.steps == step
    assert agent.wait_for(lambda: agent.heard[0].checkpoint == step)
    second = Model()
    hugging_face(job_under(agent), second, tmp_path / "disturbed")
    assert second.steps == STEPS - step
    assert torch.equal(second.parameters_now(), undisturbed.parameters_now())
    assert agent.wait_for(lambda: agent.heard[0].finished == 2)
    assert agent.heard[0].progress == STEPS


def test_a_hugging_face_checkpoint_that_was_cut_off_is_passed_over(
    job: Job, tmp_path: Path
) -> None:
    example = load_example("huggingface-trainer/trainyard_huggingface.py")
    hugging_face(job, Model(notice_at(7)), tmp_path)
    (tmp_path / "checkpoint-9").mkdir()
    (tmp_path / "checkpoint-9" / "pytorch_model.bin").write_bytes(b"half")
    assert example.last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-7")
    assert example.last_checkpoint(tmp_path / "none") is None


def test_a_hugging_face_batch_that_cannot_be_shared_is_refused(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    example = load_example("huggingface-trainer/trainyard_huggingface.py")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(WorldSizeError, match="global batch of 8 cannot be shared equally by 3"):
        example.batch_of_device(8, Job())


def test_a_hugging_face_training_stops_at_a_loss_that_is_not_finite(
    job: Job, tmp_path: Path
) -> None:
    with pytest.raises(NonFiniteLoss):
        hugging_face(job, Model(), tmp_path, data=dataset(float("nan")))


# ------------------------------------------------------------------------------------ pytorch-ddp


def losses(output: str) -> dict[int, float]:
    found = re.findall(r"^epoch (\d+): loss (\S+)$", output, re.MULTILINE)
    return {int(epoch): float(loss) for epoch, loss in found}


def test_the_ddp_script_gives_the_same_losses_whatever_the_world(tmp_path: Path) -> None:
    script = EXAMPLES / "pytorch-ddp" / "train.py"
    words = ("--epochs=2", "--samples=161")
    one = losses(Ranks(script, 1, *words, f"--checkpoints={tmp_path / 'one'}").wait()[0][0])
    three = losses(
        Ranks(script, 3, *words, "--workers=1", f"--checkpoints={tmp_path / 'three'}").wait()[0][0]
    )
    assert sorted(one) == [0, 1]
    assert three == pytest.approx(one, rel=1e-3)
    with (tmp_path / "three" / "seen.csv").open() as file:
        seen = sorted((int(line[2]), int(line[4])) for line in csv.reader(file))
    assert seen == [(epoch, sample) for epoch in range(2) for sample in range(161)]


def test_ddp_scripts_take_turns(tmp_path: Path) -> None:
    script = EXAMPLES / "pytorch-ddp" / "train.py"
    with StandInAgent(tmp_path, jobs=2, group=True, slot_timeout=60) as agent:
        jobs = [
            Ranks(
                script, 1, "--epochs=1", "--samples=97", "--turns", f"--workers={job}",
                f"--checkpoints={tmp_path / str(job)}",
                **{name: value for name, value in agent.variables(job).items()
                   if name.startswith("TRAINYARD_")},
            )
            for job in range(2)
        ]
        outputs = [job.wait() for job in jobs]
        assert agent.wait_for(lambda: all(heard.finished == 1 for heard in agent.heard))
    assert agent.overlaps == []
    assert [sum(word == "go" for word, _ in heard.stages) for heard in agent.heard] == [14, 14]
    assert losses(outputs[0][0][0]) == losses(outputs[1][0][0])
