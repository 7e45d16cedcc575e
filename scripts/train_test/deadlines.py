# SPDX-License-Identifier: Apache-2.0
"""deadlines: ElasticFlow's promises with real trainers, against the simulation of the same jobs.

A job has one process, whatever its GPUs: starting four of them takes ten seconds on two cores,
which is not what is to be measured.
"""

import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_test.cluster import Cluster, Shape
from train_test.context import Context
from train_test.figures import Report
from train_test.jobs import Order, judge_jobs, play
from train_test.simulation import compare_jct, simulate

GPUS = 4
BATCH = 16
JOBS = 20
RUNS = 3  # of which a profile is the median
PROBED = 8  # iterations
SLACK = 6  # seconds by which plans stay ahead: what a start and a stop take, and the polling
SIZES = (1, 2, 4)


@dataclass(frozen=True)
class Kind:
    name: str
    seconds: float  # of an iteration on one GPU; more of them share it


KINDS = (Kind("short", 0.4), Kind("long", 0.8))


@dataclass(frozen=True)
class Measured:
    """Of a kind on a number of GPUs."""

    rate: float  # iterations per second
    start: float  # seconds of an attempt in which it does not train: starting and leaving


def run(context: Context) -> Report:
    report = Report("deadlines")
    with context.cluster("fifo", shape=Shape(gpus=GPUS)) as cluster:
        measured = {(kind.name, gpus): probe(cluster, kind, gpus)
                    for kind in KINDS for gpus in SIZES}
    profiles = write_profiles(context.folder / "profiles.csv", measured)
    preset = write_preset(context.folder / "measured.toml", measured)
    policy = f"elasticflow:slack={SLACK}"
    with context.cluster(policy, shape=Shape(gpus=GPUS), profiles=profiles,
                         preset=preset) as cluster:
        live = play(cluster, make_orders())
    simulated = simulate(
        context, live, f"1x{GPUS}",
        ["--policy", policy, "--profiles", profiles, "--preset", preset],
        {"deadline": lambda job, first: f"{job['deadline'] - first:.6f}", "min_gpus": 1,
         "max_gpus": 4})
    judge(report, live, simulated)
    report.details["profiles"] = {f"{name}, {gpus} GPUs": each.__dict__
                                  for (name, gpus), each in measured.items()}
    return report


# ------------------------------------------------------------------------------------- the profiles


def arguments_of(kind: Kind, iterations: int) -> list[str]:
    return ["--samples", "100000", "--batch", str(BATCH), "--epochs", "1", "--workers", "0",
            "--max-iterations", str(iterations), "--forward-seconds", str(kind.seconds), "--scales",
            "--checkpoint-every", "1000"]


def probe(cluster: Cluster, kind: Kind, gpus: int) -> Measured:
    rates, starts = [], []
    for _ in range(RUNS):
        job = cluster.submit(gpus, "synthetic.py", arguments_of(kind, PROBED), duration="1m",
                             workers="per-node")
        status = cluster.wait_end(job, 120)
        times = [step.time for step in cluster.trail(job).chain]
        seconds = (times[-1] - times[1]) / (len(times) - 2)
        rates.append(1 / seconds)
        starts.append(max(0.0, status["run_s"] - PROBED * seconds))
    return Measured(statistics.median(rates), max(starts))


def write_profiles(file: Path, measured: dict[tuple[str, int], Measured]) -> Path:
    rows = [f"{name},{BATCH},{gpus},{each.rate:.5f}" for (name, gpus), each in measured.items()]
    file.write_text("\n".join(["model,batch_size,gpus,iterations_per_second", *rows]) + "\n")
    return file


def write_preset(file: Path, measured: dict[tuple[str, int], Measured]) -> Path:
    """The default rules, with restart costs as measured here."""
    lines = ['base = "sound"']
    for kind in KINDS:
        lines.append(f"[overhead.by_gpus.{kind.name}]")
        lines += [f"{gpus} = {measured[kind.name, gpus].start:.3f}" for gpus in SIZES]
    file.write_text("\n".join(lines) + "\n")
    return file


# ------------------------------------------------------------------------------------------ the run


def make_orders() -> list[Order]:
    draws = random.Random(5)
    orders, at = [], 0.0
    for _ in range(JOBS):
        kind = draws.choice(KINDS)
        alone = draws.uniform(25, 70)  # seconds on one GPU
        iterations = round(alone / kind.seconds)
        deadline = SLACK + 10 + alone * draws.uniform(0.8, 2.5)  # after its submission
        orders.append(Order(at, iterations, arguments_of(kind, iterations),
                            {"model": kind.name, "batch_size": BATCH,
                             "deadline": f"{deadline:.1f}s", "workers": "per-node"}, "1:4"))
        at += draws.expovariate(1 / 14)
    return orders


def judge(report: Report, live: list[dict[str, Any]], simulated: dict[str, dict[str, str]]) -> None:
    admitted = [job for job in live if job["state"] != "rejected"]
    late = [f"job {job['job']} by {job['ended'] - job['deadline']:.1f} s" for job in admitted
            if job["ended"] > job["deadline"]]
    rejected = sum(row["outcome"] == "rejected" for row in simulated.values())
    report.add("jobs admitted, declined",
               f"{len(admitted)}, {len(live) - len(admitted)}; simulated {len(live) - rejected}, "
               f"{rejected}", "some admitted", bool(admitted))
    report.none_of("admitted jobs that are late", late)
    judge_jobs(report, admitted)
    compare_jct(report, admitted, simulated)
    report.details["resizes"] = sum(job["resizes"] for job in live)
