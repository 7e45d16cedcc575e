# SPDX-License-Identifier: Apache-2.0
"""stages: group times predicted from profiles, for all pairs of four workloads."""

from itertools import combinations
from pathlib import Path

from train_test.cluster import Cluster, Shape
from train_test.context import Context
from train_test.figures import Report
from train_test.interleave import BATCH, Kind, judge_prediction
from train_test.profiles import profile, workload

ITERATIONS = 60
KINDS = (Kind("loads", 0.20, 0.05, 0.02), Kind("computes", 0.04, 0.20, 0.03),
         Kind("talks", 0.03, 0.06, 0.18), Kind("balanced", 0.09, 0.09, 0.09))


def arguments(kind: Kind, iterations: str) -> list[str]:
    return ["--samples", "100000", "--batch", str(BATCH), "--epochs", "1", "--workers", "0",
            "--max-iterations", iterations, "--load-seconds", str(kind.load / BATCH),
            "--forward-seconds", str(kind.forward), "--communication-seconds",
            str(kind.communication), "--interleave", "--checkpoint-every", "1000"]


def run(context: Context) -> Report:
    report = Report("stages")
    out = context.folder / "profiles"
    for kind in KINDS:
        report.details[kind.name] = profile(
            context, "stages", out, kind.name, {"batch": BATCH, "iterations": 15, "warmup": 3},
            workload(*arguments(kind, "{iterations}")))["rows"]
    for one, other in combinations(KINDS, 2):
        compare(context, report, out, one, other)
    return report


def compare(context: Context, report: Report, profiles: Path, one: Kind, other: Kind) -> None:
    """The jobs state no stages: the controller has their profiles."""
    name = f"{one.name} + {other.name}"
    with context.cluster("muri-s", shape=Shape(gpus=1), profiles=profiles) as cluster:
        jobs = [submit(cluster, kind) for kind in (one, other)]
        cluster.wait_for(
            lambda: min(cluster.trail(job).last for job in jobs) >= ITERATIONS * 2 // 3, 180,
            f"{name} to have settled")
        statuses = [cluster.status(job) for job in jobs]
        for job in jobs:
            cluster.wait_end(job, 180)
        faults = [fault for job in jobs for fault in cluster.trail(job).faults(ITERATIONS)]
    judge_prediction(report, name, statuses)
    report.none_of(f"{name}: iterations missing or done twice", faults)


def submit(cluster: Cluster, kind: Kind) -> int:
    return cluster.submit(1, "synthetic.py", arguments(kind, str(ITERATIONS)), name=kind.name,
                          model=kind.name, batch_size=BATCH, iterations=ITERATIONS)
