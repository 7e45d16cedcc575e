# SPDX-License-Identifier: Apache-2.0
"""loader: workers given by need against an even split, moved while the trainings run."""

import time
from dataclasses import dataclass
from pathlib import Path

from train_test.cluster import Cluster, Shape, children_of
from train_test.context import Context
from train_test.figures import Report

BATCH = 32
LOAD_SECONDS = 0.04  # of a sample: a worker makes 25 of them in a second
MEASURED = 15.0  # seconds
BAR = 1.2
EVEN, BY_NEED = "torchloader:mode=1", "torchloader:allocation=exact"


@dataclass(frozen=True)
class Kind:
    """A model of the catalogue: seconds in which the GPU computes an iteration."""

    name: str
    seconds: float


FAST = Kind("fast", 0.02)  # 1600 samples/s: as many workers as it can get
SLOW = Kind("slow", 1.0)  # 32 samples/s: two workers
SLOWER = Kind("slower", 1.6)  # 20 samples/s: one worker


def run(context: Context) -> Report:
    report = Report("loader")
    compare(context, report, "2 jobs", [FAST, SLOW], cores=8)
    compare(context, report, "3 jobs", [FAST, SLOWER, SLOWER], cores=9)
    return report


def compare(context: Context, report: Report, name: str, kinds: list[Kind], cores: int) -> None:
    even = measure(context, report, f"{name}, even", EVEN, kinds, cores)
    best = measure(context, report, f"{name}, by need", BY_NEED, kinds, cores)
    report.details[name] = {"even": even, "by need": best}
    report.add(f"{name}: samples/s, even split", f"{sum(even):.1f}", "-", True)
    report.at_least(f"{name}: samples/s by need / even split", sum(best) / sum(even), BAR)


def measure(context: Context, report: Report, name: str, policy: str, kinds: list[Kind],
            cores: int) -> list[float]:
    """Samples per second of each job while all of them train."""
    profiles = write_profiles(context.folder / "profiles", kinds)
    shape = Shape(gpus=len(kinds), cpus=cores)
    with context.cluster(policy, shape=shape, profiles=profiles) as cluster:
        jobs: list[int] = []
        alone = 0
        for kind in kinds:  # one behind the other: who trains already gives workers to newcomers
            job = cluster.submit(
                1, "synthetic.py",
                ["--samples", "100000", "--batch", str(BATCH), "--epochs", "1", "--load-seconds",
                 str(LOAD_SECONDS), "--forward-seconds", str(kind.seconds), "--checkpoint-every",
                 "100000"],
                model=kind.name, batch_size=BATCH, iterations=3125,
                loader_workers=cores // len(kinds))
            cluster.wait_steps(job, 2)
            jobs.append(job)
            if len(jobs) == 1:
                alone, before = workers_of(cluster, job), identity(cluster, job)
        time.sleep(5)  # what was loaded before with other workers has been used
        done = [cluster.trail(job).last for job in jobs]
        began = time.monotonic()
        time.sleep(MEASURED)
        seconds = time.monotonic() - began
        rates = [(cluster.trail(job).last - first) * BATCH / seconds
                 for job, first in zip(jobs, done)]
        if policy == BY_NEED:
            judge_moves(report, name, cluster, jobs[0], jobs[1:], alone, before)
    return rates


def judge_moves(report: Report, name: str, cluster: Cluster, job: int, others: list[int],
                alone: int, before: tuple[int, int]) -> None:
    """The first job gave workers to the others; they go, and it has them back, never restarted."""
    shared = workers_of(cluster, job)
    cluster.call("cancel", *map(str, others))
    cluster.wait_for(lambda: workers_of(cluster, job) >= alone, 30, "workers to move")
    again = workers_of(cluster, job)
    report.add(f"{name}: loader processes of the first job alone, with the others, alone again",
               f"{alone}, {shared}, {again}", "fewer, then all", shared < alone == again)
    report.add(f"{name}: attempt and process of the first job, at first and at last",
               f"{before} and {identity(cluster, job)}", "the same",
               before == identity(cluster, job))


def identity(cluster: Cluster, job: int) -> tuple[int, int]:
    """The present attempt, and the process of its rank 0."""
    attempt = cluster.trail(job).attempts[-1]
    return attempt.number, attempt.pids[0]


def workers_of(cluster: Cluster, job: int) -> int:
    """Child processes of the trainer: its loader workers."""
    return len(children_of(identity(cluster, job)[1]))


def write_profiles(folder: Path, kinds: list[Kind]) -> Path:
    """A catalogue in which a sample of a kind costs what it waits, and coefficients that say so."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {f"{kind.name},0,{kind.seconds / BATCH * 1e9:.0f},0,0,0" for kind in kinds}
    (folder / "models.csv").write_text(
        "\n".join(["model,params,C_flops,PC_flops,DC_flops,O_flops", *sorted(rows)]) + "\n")
    values = dict.fromkeys(["gpu_base", "gpu_network", "gpu_params", "gpu_batch_params",
                            "gpu_batch_point", "gpu_batch_depth", "gpu_batch_linear", "gpu_least",
                            "loader_shared"], 0.0)
    values |= {"gpu_batch_dense": 1e-9, "loader_per_worker": LOAD_SECONDS}
    (folder / "loader_model.csv").write_text(
        "coefficient,value\n" + "".join(f"{name},{value}\n" for name, value in values.items()))
    return folder
