# SPDX-License-Identifier: Apache-2.0
"""--amp and --tf32: half precision where it is safe, and nothing else is another training."""

import math
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import torch

WORKLOADS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(WORKLOADS), str(WORKLOADS.parent / "scripts"), str(Path(__file__).parent)]

import common  # noqa: E402
import transformer  # noqa: E402
from test_families import FAMILIES, train  # noqa: E402
from train_test.trail import Trail  # noqa: E402

CPU = torch.device("cpu")


def trained(folder: Path, *arguments: str) -> Trail:
    folder.mkdir()
    done = train(folder, *arguments, "--trail")
    assert done.returncode == 0, done.stderr
    return Trail(folder / "trail")


@pytest.mark.parametrize("family", ["mobilenet", "bert", "gpt2", "lstm", "speech", "ncf", "dqn",
                                    "synthetic"])
def test_bf16_sees_the_same_samples_and_learns_alike(family: str, tmp_path: Path) -> None:
    arguments = [*FAMILIES[family], "--max-iterations", "12"]
    whole = trained(tmp_path / "whole", *arguments)
    half = trained(tmp_path / "half", *arguments, "--amp", "bf16")
    assert half.faults(12) == []
    assert [step.samples for step in half.chain] == [step.samples for step in whole.chain]
    losses, others = ([step.loss for step in trail.chain] for trail in (half, whole))
    assert losses != others and all(map(math.isfinite, losses))
    if family != "dqn":  # which plays another game after the first rounding
        assert mean(losses) == pytest.approx(mean(others), rel=0.2)


def test_bf16_leaves_the_parameters_in_float32_for_either_to_go_on(tmp_path: Path) -> None:
    arguments = ["lstm.py", "--samples", "64"]
    assert train(tmp_path, *arguments, "--max-iterations", "2", "--amp", "bf16").returncode == 0
    saved = torch.load(next(tmp_path.glob("checkpoint-*2.1")) / "state.pt")
    kinds = {value.dtype for value in saved["parts"]["model"].values()} \
        if "parts" in saved else {value.dtype for value in saved["model"].values()}
    assert kinds == {torch.float32}
    done = train(tmp_path, *arguments, "--max-iterations", "4", "--print-every", "1")
    assert done.returncode == 0, done.stderr
    assert "iteration 2:" not in done.stdout and "iteration 4:" in done.stdout


@pytest.mark.parametrize("option", ["--tf32", "--no-tf32"])
def test_tf32_changes_nothing_on_a_cpu(option: str, tmp_path: Path) -> None:
    arguments = ["lstm.py", "--max-iterations", "4"]
    whole = trained(tmp_path / "whole", *arguments)
    flagged = trained(tmp_path / "flagged", *arguments, option)
    assert flagged.parameters == whole.parameters is not None


def test_tf32_is_set_as_said_and_else_left_alone() -> None:
    def settings() -> tuple[str, bool, bool]:
        return (torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32,
                torch.backends.cudnn.allow_tf32)

    of_torch = settings()
    try:
        common.use_tf32(None)
        assert settings() == of_torch
        common.use_tf32(True)
        assert settings() == ("high", True, True)
        common.use_tf32(False)
        assert settings() == ("highest", False, False)
    finally:
        torch.set_float32_matmul_precision(of_torch[0])
        torch.backends.cudnn.allow_tf32 = of_torch[2]


def test_fp16_on_a_cpu_is_refused(tmp_path: Path) -> None:
    done = train(tmp_path, "lstm.py", "--amp", "fp16")
    assert done.returncode == 1
    assert "expected --amp bf16" in done.stderr and "Traceback" not in done.stderr


class Scaler:
    """Does what torch's does, and writes down in what order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        self.calls.append("scale")
        return loss * 1024

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        self.calls.append("unscale")
        for each in optimizer.param_groups[0]["params"]:
            each.grad /= 1024

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.calls.append("step")
        if "unscale" not in self.calls:
            self.unscale_(optimizer)
        optimizer.step()

    def update(self) -> None:
        self.calls.append("update")


@pytest.mark.parametrize("clips", [True, False])
def test_gradients_in_fp16_are_scaled_and_clipped_in_their_own_size(
    clips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaler = Scaler()
    monkeypatch.setattr(common, "make_scaler", lambda: scaler)
    precision = common.Precision("fp16", torch.device("meta"))
    weight = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    seen: list[float] = []
    precision.backward((weight * 0.5).sum())
    precision.step(optimizer, (lambda: seen.append(float(weight.grad))) if clips else None)
    assert float(weight) == 2.5
    assert seen == ([0.5] if clips else [])
    order = ["scale", "unscale", "step", "update"] if clips else ["scale", "step", "unscale", "update"]
    assert scaler.calls == order


def test_torch_has_a_scaler() -> None:
    assert math.isfinite(common.make_scaler().get_scale())


def test_gpt2_in_its_published_form_is_in_half_precision_on_gpus_only(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(arch: str, size: str, device: str) -> Any:
        task = common.Task(dataset=None, model=None, loss=None, optimizer=None,  # type: ignore
                           half=transformer.trains_in_half(arch, size))
        return common.Precision.of_users(task, torch.device(device))

    for supported, expected in ((True, "bf16"), (False, "fp16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda it=supported: it)
        assert of("gpt2", "published", "cuda") == expected
        assert of("gpt2", "published", "cpu") == "off"
        assert of("gpt2", "tiny", "cuda") == "off"
        assert of("bert", "published", "cuda") == "off"
