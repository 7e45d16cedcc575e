# SPDX-License-Identifier: Apache-2.0
"""The scripts of docs/pytorch.md, run on CPUs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIMEOUT, Ranks, free_port

pytest.importorskip("torch")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="without the repository's documentation")

BEGIN = """
from trainyard.train import AdaptiveBatch, Checkpoint, DataLoader, Job
job = Job()
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
"""
NEEDS = """
torch.set_num_threads(1)
torch.manual_seed(1)
images = torch.randn(37, 4)
dataset = torch.utils.data.TensorDataset(images, images.sum(dim=1, keepdim=True))
criterion = torch.nn.functional.mse_loss
steps = []
def evaluate(model):
    assert checkpoint.finished
    print("evaluated")
def make_model():
    return torch.nn.Linear(4, 1)
def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
"""
MODEL = """
model = DistributedDataParallel(make_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(dataset, batch_size=8, job=job)
checkpoint = Checkpoint(job, model=model, optimizer=optimizer, loader=loader)
"""
END = """
print(loader.iterations, loader.is_done(2), sum(p.sum().item() for p in model.parameters()))
"""


def scripts_of(heading: str, language: str = "python") -> list[str]:
    section = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (found,) = [text for text in section if text.startswith(heading + "\n")]
    return re.findall(rf"```{language}\n(.*?)```", found, re.DOTALL)


def on_cpus(script: str) -> str:
    """The script with small numbers and without GPUs."""
    for gpu in ("torch.cuda.set_device(job.local_rank)", "torch.cuda.synchronize()"):
        script = script.replace(gpu, "pass")
    script = script.replace('"nccl"', '"gloo"').replace(".cuda()", "")
    script = script.replace("epochs=90", "epochs=2").replace("batch_size=256", "batch_size=8")
    return script.replace("workers=4", "workers=1").replace("% 500", "% 3")


def run(script: str, folder: Path) -> list[list[str]]:
    """What two ranks print at the end."""
    path = folder / "script.py"
    path.write_text(script)
    outputs = Ranks(path, 2, TRAINYARD_CHECKPOINT_DIR=str(folder)).wait()
    return [output.split() for output, _ in outputs]


def elastic_script() -> str:
    """The one of "Before and after", to be run on CPUs."""
    before, after = scripts_of("Before and after")
    compile(before, "before", "exec")
    assert len(re.findall(r"# \+$", after, re.MULTILINE)) == 11  # "by eleven lines"
    imports = "from torch.nn.parallel import DistributedDataParallel\n"
    begin, rest = on_cpus(after).split(imports)
    last = "    dist.destroy_process_group()"
    assert rest.count(last) == 1
    rest = rest.replace(last, "    " + END.strip() + "\n" + last)
    return begin + imports + NEEDS + rest.replace("checkpoint =", "global checkpoint; checkpoint =")


def test_the_script_before_and_after(tmp_path: Path) -> None:
    one, two = run(elastic_script(), tmp_path)
    assert one == two
    assert one[:3] == ["evaluated", "10", "True"]


def test_the_script_alone_needs_the_variables_that_are_stated(tmp_path: Path) -> None:
    (alone, _) = scripts_of("Alone and with torchrun", "sh")
    *words, python, script = alone.split()
    assert (python, script) == ("python3", "train.py")
    variables = dict(word.split("=") for word in words) | {"MASTER_PORT": str(free_port())}
    (tmp_path / script).write_text(elastic_script())
    run = subprocess.run([sys.executable, script], cwd=tmp_path, env=os.environ | variables,
                         capture_output=True, text=True, timeout=TIMEOUT)
    assert run.stdout.split()[:3] == ["evaluated", "10", "True"], run.stderr


@pytest.mark.parametrize("gpus, processes", [("3", "1"), ("0,1,5", "3")])
def test_torchrun_gets_the_gpus_of_the_attempt(gpus: str, processes: str, tmp_path: Path) -> None:
    (_, submit) = scripts_of("Alone and with torchrun", "sh")
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/sh\necho "$@"\n')
    torchrun.chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TRAINYARD_GPUS": gpus, "WORLD_SIZE": "2",
                 "RANK": "1", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "20001"}
    command = submit.partition(" -- ")[2]
    done = subprocess.run(["sh", "-c", command], env=variables, capture_output=True, text=True,
                          timeout=TIMEOUT)
    assert done.stdout == (
        "--nnodes 2 --node_rank 1 --master_addr 10.0.0.1 --master_port 20001 "
        f"--nproc_per_node {processes} train.py\n"
    ), done.stderr


def test_a_loop_of_ones_own(tmp_path: Path) -> None:
    (loop,) = scripts_of("A loop of your own")
    train_step = """
def train_step(batch):
    loss = criterion(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loader.scale_loss(loss).backward()
    optimizer.step()
"""
    one, two = run(BEGIN + NEEDS + MODEL + train_step + on_cpus(loop) + END, tmp_path)
    assert one == two
    assert one[:2] == ["10", "True"]


def test_a_loop_with_batches_that_adapt(tmp_path: Path) -> None:
    (loop,) = scripts_of("Batches that adapt")
    script = on_cpus(loop).replace("most_batch=8192", "most_batch=32")
    model = "model = DistributedDataParallel(make_model())\n"
    one, two = run(BEGIN + NEEDS + model + script + END, tmp_path)
    assert one == two
    assert one[1] == "True"


def test_a_loop_with_turns(tmp_path: Path) -> None:
    (loop,) = scripts_of("Turns")
    loader, rest = on_cpus(loop).split("\n", 1)
    assert loader.startswith("loader = DataLoader(")
    model = MODEL.replace("loader = DataLoader(dataset, batch_size=8, job=job)", loader)
    one, two = run(BEGIN + NEEDS + model + rest + END, tmp_path)
    assert one == two
    assert one[:2] == ["10", "True"]
