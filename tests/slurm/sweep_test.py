# SPDX-License-Identifier: Apache-2.0
"""sweep_test.py PROGRAM SOURCE [--smoke]: `sweep --slurm` against a real Slurm.

Starts munged, slurmctld and two slurmd on loopback in a temporary folder, and ends them. A sweep is
interrupted, killed, loses a task and is finished: its results.csv must be that of a sweep on this
machine, and nothing may have been submitted twice but what was lost. --smoke: a sweep that nobody
disturbs.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from expectations import TestFailure, expect, wait_until
from real_slurm import PATIENCE, Cluster, Node, Slurm, running_slurm

SEEDS = 10
MAX_ARRAY_SIZE = 5  # tasks in an array: one less, so that several arrays are needed
EXPERIMENT = """
[[trace]]
name = "made"
generate = {{style = "mix", jobs = 60, cluster-gpus = 16, seed = "{{seed}}"}}
[[cluster]]
name = "c"
spec = "16x8"
[[run]]
label = "it's las"
policy = "las"
[[run]]
label = "broken"
policy = "las:quantm=3"
[axes]
seed = {seeds}
[[exclude]]
run = "broken"
seed = {more_seeds}
"""
CLUSTER = Cluster(nodes=[Node(f"n{i}") for i in range(2)],
                  partitions=["all Nodes=ALL Default=YES MaxTime=INFINITE State=UP"],
                  more=f"SelectTypeParameters=CR_Core\nMaxArraySize={MAX_ARRAY_SIZE}\n")


class Sweep:
    def __init__(self, program: str, slurm: Slurm, folder: Path) -> None:
        self.program = program
        self.slurm = slurm
        self.folder = folder
        seeds = list(range(SEEDS))
        (folder / "e.toml").write_text(EXPERIMENT.format(seeds=seeds, more_seeds=seeds[1:]))

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, "sweep", "e.toml", *options], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.slurm.environment, cwd=self.folder)

    def start_on_slurm(self, *options: str) -> subprocess.Popen[str]:
        return self.start("--slurm", "--out", "out", "--slurm-grace", "1", *options)

    def arrays(self) -> int:
        return len(list((self.folder / "out" / "slurm").glob("*.tasks")))

    def csv(self, out: str) -> str:
        return (self.folder / out / "results.csv").read_text()


def disturbed_sweep(sweep: Sweep) -> None:
    slurm = sweep.slurm
    arrays = -(-(SEEDS + 1) // (MAX_ARRAY_SIZE - 1))
    slurm.set_nodes("drain")

    interrupted = sweep.start_on_slurm()
    wait_until("not all tasks are submitted", lambda: len(slurm.queue()) == SEEDS + 1, PATIENCE)
    time.sleep(2)  # sbatch has told it
    interrupted.send_signal(signal.SIGINT)
    _, said = interrupted.communicate(timeout=PATIENCE)
    expect(interrupted.returncode == 1 and "scancel " in said, said)
    expect(len(slurm.queue()) == SEEDS + 1, "tasks have gone with the sweep")

    killed = sweep.start_on_slurm()
    time.sleep(1)
    killed.kill()
    killed.communicate(timeout=PATIENCE)
    expect(sweep.arrays() == arrays, f"{sweep.arrays()} arrays; expected {arrays}")

    slurm.says("scancel", slurm.queue()[0])
    slurm.set_nodes("resume")
    last = sweep.start_on_slurm()
    _, said = last.communicate(timeout=PATIENCE)
    expect(last.returncode == 1 and "1 of 11 cells failed:" in said, said)
    expect(sweep.arrays() == arrays + 1, f"{sweep.arrays()} arrays; expected {arrays} and one "
           "for the lost task")


def tasks_without_results(sweep: Sweep) -> None:
    """A task that never gives a result fails with the end of its log, after three attempts."""
    lost = sweep.start("--slurm", "--out", "lost", "--slurm-grace", "0", "--cells-per-task", "11",
                       "--slurm-args", "--export=NONE,PATH=/nowhere")
    _, said = lost.communicate(timeout=PATIENCE)
    expect(lost.returncode == 1 and "11 of 11 cells failed:" in said, said)
    expect("its Slurm task ended 3 times without a result" in said and "sed: not found" in said,
           said)


def packed_sweep(sweep: Sweep) -> None:
    packed = sweep.start("--slurm", "--out", "packed", "--cells-per-task", "4")
    packed.communicate(timeout=PATIENCE)
    expect(sweep.csv("packed") == sweep.csv("here"), "several cells in a task: results.csv differs")


def main() -> int:
    program = sys.argv[1]
    smoke = sys.argv[3:] == ["--smoke"]
    with tempfile.TemporaryDirectory(prefix="trainyard-slurm-") as name:
        folder = Path(name)
        (folder / "slurm").mkdir(mode=0o700)
        try:
            with running_slurm(folder / "slurm", CLUSTER) as slurm:
                sweep = Sweep(program, slurm, folder)
                sweep.start("--out", "here").communicate(timeout=PATIENCE)
                packed_sweep(sweep)
                if not smoke:
                    disturbed_sweep(sweep)
                    expect(sweep.csv("out") == sweep.csv("here"),
                           "results.csv differs from that of a sweep on this machine")
                    tasks_without_results(sweep)
        except (TestFailure, OSError, subprocess.TimeoutExpired) as failure:
            print(f"sweep on Slurm: {failure}", file=sys.stderr)
            return 1
    print("sweep on Slurm: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
