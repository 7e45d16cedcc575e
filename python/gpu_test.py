#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_test.py: the client library and the workloads on a GPU of NVIDIA, without Trainyard itself.

Needs Python and torch only; the agent's socket is played by the stand-in of the unit tests. Trains each
family for a moment, lets two jobs take turns by stage, moves loader workers in a running job, and resumes
a preempted training. Prints the figures as a table for docs/gpu.md, with date and hardware; exit status 1
if something fails. Where there is no GPU it says so and ends with 0. `--device cpu` tries the test itself.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTHON = Path(__file__).resolve().parent
WORKLOADS = PYTHON.parent / "workloads"
sys.path[:0] = [str(PYTHON), str(PYTHON / "tests")]

from stand_in_agent import StandInAgent  # noqa: E402

FAMILIES = {
    "resnet18": ["image_classification.py", "--arch", "resnet18"],
    "vgg16": ["image_classification.py", "--arch", "vgg16"],
    "mobilenet": ["image_classification.py", "--arch", "mobilenet"],
    "bert": ["transformer.py", "--arch", "bert"],
    "gpt2": ["transformer.py", "--arch", "gpt2"],
    "lstm": ["lstm.py"],
    "speech": ["speech.py"],
    "ncf": ["recommendation.py"],
    "dqn": ["reinforcement.py"],
}
ITERATIONS = 30


class Test:
    def __init__(self, device: str, folder: Path) -> None:
        self.device = device
        self.folder = folder
        self.rows: list[tuple[str, str, bool]] = []

    def note(self, what: str, figure: str, passed: bool) -> None:
        self.rows.append((what, figure, passed))
        print(f"{'pass' if passed else 'FAIL'}  {what}: {figure}", flush=True)

    def start(self, name: str, arguments: list[str],
              variables: dict[str, str] | None = None) -> "subprocess.Popen[str]":
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
        alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        environment = kept | alone | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0",
                                      "PYTHONPATH": str(PYTHON),
                                      "TRAINYARD_CHECKPOINT_DIR": str(folder)} | (variables or {})
        return subprocess.Popen(
            [sys.executable, "-B", str(WORKLOADS / arguments[0]), "--device", self.device,
             *arguments[1:]],
            env=environment, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, what: str, process: "subprocess.Popen[str]") -> bool:
        try:
            output, _ = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            output += "\nhas not ended in 300 s"
        if process.returncode != 0:
            self.note(what, f"exit status {process.returncode}: {output.strip()[-300:]}", False)
        return process.returncode == 0

    # ------------------------------------------------------------------------------- the tests

    def families(self) -> None:
        for name, arguments in FAMILIES.items():
            losses = self.folder / f"{name}.json"
            process = self.start(name, [*arguments, "--max-iterations", str(ITERATIONS), "--workers",
                                        "1", "--losses", str(losses), "--job-name", name])
            if not self.finish(name, process):
                continue
            seconds = float((self.folder / name / f"PERF_{name}.txt").read_text().split()[0])
            values = json.loads(losses.read_text())
            values = list(values.values()) if isinstance(values, dict) else values
            finite = all(value == value and abs(value) != float("inf") for value in values)
            self.note(name, f"{seconds * 1000:.1f} ms an iteration, loss finite: {finite}", finite)

    def stages(self) -> None:
        """Two jobs of a group: their stages in turns, no stage in two jobs at a time."""
        folder = self.folder / "turns"
        folder.mkdir()
        with StandInAgent(folder, jobs=2, group=True) as agent:
            began = time.monotonic()
            jobs = [self.start(f"turns{job}", ["image_classification.py", "--arch", "resnet18",
                                               "--interleave", "--max-iterations", str(ITERATIONS),
                                               "--workers", "1"], agent.variables(job))
                    for job in range(2)]
            ended = [self.finish("turns", job) for job in jobs]
            counts = [len([1 for what, _ in agent.heard[job].stages if what == "go"])
                      for job in range(2)]
        self.note("stages of two jobs by turns",
                  f"{counts[0]} and {counts[1]} turns in {time.monotonic() - began:.1f} s",
                  all(ended) and min(counts) >= ITERATIONS)

    def loader(self) -> None:
        """Loader workers come and go by `tune` lines while the job runs."""
        folder = self.folder / "tune"
        folder.mkdir()
        with StandInAgent(folder) as agent:
            process = self.start("tuned", ["image_classification.py", "--arch", "resnet18",
                                           "--max-iterations", "400", "--workers", "1"],
                                 agent.variables())
            heard = agent.heard[0]
            seen = []
            for workers in (1, 4, 2):
                agent.tune(loader_workers=workers)
                before = heard.progress
                agent.wait_for(lambda: heard.progress >= before + 20 or process.poll() is not None, 120)
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
                seen.append(len(children.read_text().split()) if children.exists() else -1)
            agent.stop(60)
            ended = self.finish("loader workers", process)
        self.note("loader workers moved", f"processes beside the trainer with 1, 4 and 2: {seen}",
                  ended and seen[1] - seen[0] == 3 and seen[1] - seen[2] == 2)

    def resume(self) -> None:
        """A preempted training goes on where it was, and ends as one that was never stopped."""
        arguments = ["image_classification.py", "--arch", "resnet18", "--workers", "1",
                     "--max-iterations", str(3 * ITERATIONS), "--trail"]
        folder, again = self.folder / "socket", self.folder / "socket-again"
        folder.mkdir()
        again.mkdir()
        with StandInAgent(folder) as agent:
            process = self.start("resumed", arguments, agent.variables())
            heard = agent.heard[0]
            agent.wait_for(lambda: heard.progress >= ITERATIONS or process.poll() is not None, 240)
            agent.stop(60)
            ended = self.finish("resume", process)
            stopped_at = heard.checkpoint
        with StandInAgent(again) as agent:
            ended = self.finish("resume", self.start("resumed", arguments, agent.variables())) and ended
            done = agent.heard[0].checkpoint
        self.note("resume", f"stopped at {stopped_at:g}, went on to {done:g}",
                  ended and 0 < stopped_at < 3 * ITERATIONS == done)


def hardware(device: str) -> str | None:
    """What the test runs on; none: there is no such device."""
    try:
        import torch
    except ImportError:
        return None
    if device == "cpu":
        return f"CPU, torch {torch.__version__}"
    if not torch.cuda.is_available():
        return None
    return f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, CUDA {torch.version.cuda}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    where = hardware(device)
    if where is None:
        print("gpu-test: torch sees no GPU of NVIDIA here: nothing has been checked")
        return 0
    with tempfile.TemporaryDirectory(prefix="gpu-test-") as folder:
        test = Test(device, Path(folder))
        for part in (test.families, test.stages, test.loader, test.resume):
            part()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    print(f"\n{today}, {where}\n\n| what | figure | |\n|---|---|---|")
    for what, figure, passed in test.rows:
        print(f"| {what} | {figure} | {'pass' if passed else 'FAIL'} |")
    return 0 if all(passed for _, _, passed in test.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
