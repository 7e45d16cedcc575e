# SPDX-License-Identifier: Apache-2.0
"""interleave: jobs that need different resources take turns on the same GPU."""

import statistics
from dataclasses import dataclass
from typing import Any

from train_test.cluster import Cluster, Shape
from train_test.context import Context
from train_test.figures import Report
from train_test.trail import overlap

ITERATIONS = 80
BATCH = 4
BAR = 1.3
OVERLAP = 0.05
TOLERANCE = 0.15  # of the predicted group time
SETTLED = 10  # iterations after which the group is counted


@dataclass(frozen=True)
class Kind:
    """Seconds of an iteration in each stage."""

    name: str
    load: float
    forward: float
    communication: float

    @property
    def stages(self) -> str:
        return f"{self.load},{self.forward},{self.communication}"

    @property
    def alone(self) -> float:
        return self.load + self.forward + self.communication


LOADING = Kind("loading", 0.24, 0.04, 0.02)
COMPUTING = Kind("computing", 0.04, 0.24, 0.02)
TALKING = Kind("talking", 0.04, 0.04, 0.24)


def run(context: Context) -> Report:
    report = Report("interleave")
    compare(context, report, "2 jobs", [LOADING, COMPUTING])
    compare(context, report, "3 jobs", [LOADING, COMPUTING, TALKING])
    return report


def compare(context: Context, report: Report, name: str, kinds: list[Kind]) -> None:
    alone = 0.0
    with context.cluster("fifo", shape=Shape(gpus=1)) as cluster:
        for kind in kinds:
            job = submit(cluster, kind, ITERATIONS // 2)
            cluster.wait_end(job, 120)
            alone += pace(cluster, job)
    with context.cluster("muri-s", shape=Shape(gpus=1)) as cluster:
        jobs = [submit(cluster, kind, ITERATIONS) for kind in kinds]
        cluster.wait_for(
            lambda: min(cluster.trail(job).last for job in jobs) >= ITERATIONS * 2 // 3, 180,
            "the group to have settled")
        statuses = [cluster.status(job) for job in jobs]
        for job in jobs:
            cluster.wait_end(job, 180)
        group = max(pace(cluster, job) for job in jobs)
        trails = [cluster.trail(job) for job in jobs]
        common = {stage: overlap(trails, stage) for stage in ("forward", "communication")}
        faults = [fault for job in jobs for fault in cluster.trail(job).faults(ITERATIONS)]
    report.details[name] = {"alone_s": alone, "group_s": group}
    report.at_least(f"{name}: throughput against one after the other", alone / group, BAR)
    report.none_of(f"{name}: iterations missing or done twice", faults)
    told = judge_prediction(report, name, statuses)
    for stage, share in common.items():
        # Where the program has no turns, jobs overlap at will.
        report.add(f"{name}: share of stage {stage} in which another job was in it, too",
                   f"{share:.3f}", f"<= {OVERLAP:g}", share <= OVERLAP if told else None)


def judge_prediction(report: Report, name: str, statuses: list[dict[str, Any]]) -> bool:
    """Whether the program tells group times."""
    what = f"{name}: group time measured / predicted"
    fields = ("group_iteration_predicted_s", "group_iteration_measured_s")
    if not all(status.get(field) for status in statuses for field in fields):
        report.add(what, "the program does not tell group times", f"1 +- {TOLERANCE:g}", None)
        return False
    predicted = statistics.mean(status[fields[0]] for status in statuses)
    measured = statistics.mean(status[fields[1]] for status in statuses)
    ratio = measured / predicted
    report.add(what, f"{measured:.3f} s / {predicted:.3f} s = {ratio:.3f}", f"1 +- {TOLERANCE:g}",
               abs(ratio - 1) <= TOLERANCE)
    return True


def submit(cluster: Cluster, kind: Kind, iterations: int) -> int:
    """Loads in the trainer itself, so that a stage is what its name says."""
    return cluster.submit(
        1, "synthetic.py",
        ["--samples", "100000", "--batch", str(BATCH), "--epochs", "1", "--workers", "0",
         "--max-iterations", str(iterations), "--load-seconds", str(kind.load / BATCH),
         "--forward-seconds", str(kind.forward), "--communication-seconds",
         str(kind.communication), "--interleave", "--checkpoint-every", "1000"],
        name=kind.name, stages=kind.stages, iteration_time=f"{kind.alone:g}s",
        iterations=iterations)


def pace(cluster: Cluster, job: int) -> float:
    """Seconds of an iteration, over the middle of the longest attempt: all members are there."""
    attempt = max(cluster.trail(job).attempts, key=lambda each: len(each.lines))
    times = [step.time for step in attempt.steps()][SETTLED:-5]
    return (times[-1] - times[0]) / (len(times) - 1)
