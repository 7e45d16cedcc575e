# SPDX-License-Identifier: Apache-2.0
"""The client library and the workloads on a GPU, without Trainyard itself: the agent's socket is played
by the stand-in of the unit tests."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "python" / "tests")]

from stand_in_agent import StandInAgent  # noqa: E402

from gpu_test.report import Timed  # noqa: E402
from train_test.cluster import children_of  # noqa: E402

NAMES = ("families", "stages", "loader", "resume")
ITERATIONS = 30  # of a family; the first ten are not counted
TURNS = 20
MANY_CORES = 8  # enough for the tests that measure nothing to run side by side
SERVERS = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")
RESNET = ["image_classification.py", "--arch", "resnet18"]


class Library:
    def __init__(self, device: str, folder: Path, report: Timed, limit: float) -> None:
        """`limit`: seconds from the beginning of the report after which nothing goes on."""
        self.device = device
        self.folder = folder
        self.report = report
        self.limit = limit

    def run(self, names: list[str]) -> None:
        others = [name for name in NAMES[1:] if name in names]
        if "families" in names:
            self.families()
        many = (os.cpu_count() or 1) >= MANY_CORES
        with ThreadPoolExecutor(len(others) or 1 if many else 1) as pool:
            for done in [pool.submit(self._part, name) for name in others]:
                done.result()

    def _part(self, name: str) -> None:
        self.report.say(f"{name} ...")
        getattr(self, name)()

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.limit - self.report.elapsed)

    # --------------------------------------------------------------------------------- processes

    def start(self, name: str, command: list[str],
              variables: dict[str, str] | None = None) -> "subprocess.Popen[str]":
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TRAINYARD_")}
        alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        environment = kept | alone | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0",
                                      "PYTHONPATH": str(SOURCE / "python"),
                                      "TRAINYARD_CHECKPOINT_DIR": str(folder)} | (variables or {})
        # Into a file: a pipe that nobody reads would stop the training.
        with (folder / "log").open("a") as log:
            return subprocess.Popen([sys.executable, *command], env=environment, cwd=folder, text=True,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def workload(self, name: str, arguments: list[str],
                 variables: dict[str, str] | None = None) -> "subprocess.Popen[str]":
        script = str(SOURCE / "workloads" / arguments[0])
        return self.start(name, [script, "--device", self.device, *arguments[1:]], variables)

    def finish(self, what: str, name: str, process: "subprocess.Popen[str]") -> bool:
        """Whether it has ended well; a figure says so if not."""
        how = ""
        try:
            process.wait(self.left)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            how = f"has not ended within {self.limit:.0f} s of the whole test: "
        if process.returncode != 0:
            log = (self.folder / name / "log").read_text().strip()
            self.report.add(what, f"{how}exit status {process.returncode}: {log[-300:]}", "0", False)
        return process.returncode == 0

    # ------------------------------------------------------------------------------- the tests

    def families(self) -> None:
        """Each family for a moment, in one process; it loads by itself."""
        self.report.say("families: torch is imported, the GPU is opened ...")
        out = self.folder / "families.out"
        from gpu_test.families import FAMILIES
        process = self.start("families", ["-c", (
            f"import sys; sys.stdout = open({str(out)!r}, 'w')\n"
            f"sys.path.insert(0, {str(SOURCE / 'scripts')!r})\n"
            f"sys.argv = ['families.py', {self.device!r}, '{ITERATIONS}']\n"
            "from gpu_test.families import main\nmain()")])
        seen = 0
        while True:
            ended = process.poll() is not None
            with suppress(FileNotFoundError):
                lines = out.read_text().splitlines(keepends=True)
                for line in lines[seen:]:
                    if line.endswith("\n"):
                        seen += 1
                        self._family(json.loads(line))
            if ended or self.left == 0:
                break
            time.sleep(0.1)
        self.finish("families", "families", process)
        if seen != len(FAMILIES):
            self.report.add("families", f"{seen} of {len(FAMILIES)} were trained", "all", False)

    def _family(self, told: dict[str, object]) -> None:
        if "error" in told:
            self.report.add(f"{told['name']}", f"{told['error']}", "it trains", False)
            return
        seconds = told["seconds"]
        assert isinstance(seconds, float)
        self.report.add(f"{told['name']}", f"{seconds * 1000:.1f} ms an iteration, losses finite: "
                        f"{told['finite']}", "finite", bool(told["finite"]))

    def stages(self) -> None:
        """Two jobs of a group: their stages in turns, no stage in two jobs at a time."""
        folder = self.folder / "turns"
        folder.mkdir()
        began = time.monotonic()
        with StandInAgent(folder, jobs=2, group=True) as agent:
            jobs = [self.workload(f"turns{job}", [*RESNET, "--interleave", "--max-iterations",
                                                  str(TURNS), "--workers", "0"],
                                  agent.variables(job)) for job in range(2)]
            ended = [self.finish("turns", f"turns{number}", job) for number, job in enumerate(jobs)]
            counts = [len([1 for what, _ in agent.heard[job].stages if what == "go"])
                      for job in range(2)]
        self.report.add("stages of two jobs by turns",
                        f"{counts[0]} and {counts[1]} turns in {time.monotonic() - began:.1f} s, "
                        f"{len(agent.overlaps)} overlaps", f">= {TURNS}, no overlap",
                        all(ended) and min(counts) >= TURNS and not agent.overlaps)

    def loader(self) -> None:
        """Loader workers come and go by `tune` lines while the job runs. They are spawned, as they are
        wherever CUDA is in use: each imports torch, for longer than many iterations."""
        folder = self.folder / "tune"
        folder.mkdir()
        seen, took = [], []
        with StandInAgent(folder) as agent:
            process = self.workload("tuned", [*RESNET, "--workers", "1", "--start-method", "spawn",
                                              "--samples", "1000000", "--epochs", "1000"],
                                    agent.variables())
            heard = agent.heard[0]
            for workers in (1, 4, 2, 3, 1):
                began = time.monotonic()
                agent.tune(loader_workers=workers)
                before = heard.progress
                agent.wait_for(lambda: process.poll() is not None or (
                    heard.progress > before and loaders_of(process.pid) == workers), self.left)
                seen.append(loaders_of(process.pid))
                took.append(f"{time.monotonic() - began:.1f}")
                self.report.say(f"loader: {workers} workers asked for, {seen[-1]} there")
            agent.stop(60)
            ended = self.finish("loader workers", "tuned", process)
        self.report.add("loader workers moved", f"with 1, 4, 2, 3 and 1: {seen}, after "
                        f"{', '.join(took)} s", "as many", ended and seen == [1, 4, 2, 3, 1])

    def resume(self) -> None:
        """A preempted training goes on where it was, and ends as one that was never stopped."""
        whole = 2 * TURNS
        arguments = [*RESNET, "--workers", "0", "--max-iterations", str(whole), "--trail"]
        folder, again = self.folder / "socket", self.folder / "socket-again"
        folder.mkdir()
        again.mkdir()
        with StandInAgent(folder) as agent:
            process = self.workload("resumed", arguments, agent.variables())
            heard = agent.heard[0]
            agent.wait_for(lambda: heard.progress >= TURNS or process.poll() is not None, self.left)
            agent.stop(60)
            ended = self.finish("resume", "resumed", process)
            stopped_at = heard.checkpoint
        self.report.say(f"resume: stopped at {stopped_at:g}")
        with StandInAgent(again) as agent:
            process = self.workload("resumed", arguments, agent.variables())
            ended = self.finish("resume", "resumed", process) and ended
            done = agent.heard[0].checkpoint
        self.report.add("resume", f"stopped at {stopped_at:g}, went on to {done:g}", f"{whole}",
                        ended and 0 < stopped_at < whole == done)


def loaders_of(trainer: int) -> int:
    """Loader processes of a trainer: its children but for the servers of Python's multiprocessing."""
    count = 0
    for child in children_of(trainer):
        with suppress(OSError):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            count += not any(server in command for server in SERVERS)
    return count
