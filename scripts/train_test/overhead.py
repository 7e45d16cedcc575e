# SPDX-License-Identifier: Apache-2.0
"""overhead: what starts, stops and resizes cost, and a simulation that knows it, against a live run.

The table is ElasticFlow's figure 12b, from this machine. A job has one process, whatever its GPUs:
starting several of them takes longer on two cores the more of them start at once.
"""

import random
from dataclasses import dataclass

from train_test.cluster import Shape
from train_test.context import Context
from train_test.figures import Report
from train_test.jobs import Order, judge_jobs, play
from train_test.profiles import profile, workload
from train_test.simulation import compare_jct, simulate

GPUS = 2
BATCH = 16
JOBS = 20
POLICY = "srtf"


@dataclass(frozen=True)
class Kind:
    name: str
    seconds: float  # of an iteration


KINDS = (Kind("quick", 0.1), Kind("slow", 0.3))


def arguments(kind: Kind, iterations: str) -> list[str]:
    return ["--samples", "100000", "--batch", str(BATCH), "--epochs", "1", "--workers", "0",
            "--max-iterations", iterations, "--forward-seconds", str(kind.seconds),
            "--checkpoint-every", "1000"]


def run(context: Context) -> Report:
    report = Report("overhead")
    costs, rates = context.folder / "costs", context.folder / "rates"
    for kind in KINDS:
        measure = {"batch": BATCH, "iterations": 10, "warmup": 3, "noise": 30}
        changes = profile(context, "overhead", costs, kind.name, {**measure, "gpus": 1},
                          workload(*arguments(kind, "1000000")))["changes"]
        report.details[kind.name] = changes
        for change in changes:
            what = "start" if change["from"] == 0 else "stop and go on"
            report.add(f"{kind.name}: {what}", f"{change['seconds']['mean']:.2f} s", "measured",
                       change["seconds"]["mean"] > 0)
        profile(context, "throughput", rates, kind.name, {**measure, "gpus": 1},
                workload(*arguments(kind, "{iterations}")))
    preset = costs / "overhead.toml"
    with context.cluster(POLICY, shape=Shape(gpus=GPUS), profiles=rates, preset=preset) as cluster:
        live = play(cluster, make_orders())
    judge_jobs(report, live)
    compare_jct(report, live, simulate(context, live, f"1x{GPUS}", [
        "--policy", POLICY, "--profiles", rates, "--preset", preset]))
    report.details["preemptions"] = sum(job["preemptions"] for job in live)
    return report


def make_orders() -> list[Order]:
    """More work than the GPUs can do at once, so that jobs wait and give way."""
    draws = random.Random(7)
    orders, at = [], 0.0
    for _ in range(JOBS):
        kind = draws.choice(KINDS)
        iterations = round(draws.uniform(6, 40) / kind.seconds)
        orders.append(Order(at, iterations, arguments(kind, str(iterations)),
                            {"model": kind.name, "batch_size": BATCH}))
        at += draws.expovariate(1 / 10)
    return orders
