# SPDX-License-Identifier: Apache-2.0
"""overhead: what starts, stops and resizes cost, and a simulation that knows it, against a live run.

The table is ElasticFlow's figure 12b, from this machine. A job has one process, whatever its GPUs:
starting several of them takes longer on two cores the more of them start at once.
"""

import random
import time
from dataclasses import dataclass
from typing import Any

from train_test.cluster import ENDED, Cluster, Shape
from train_test.context import Context
from train_test.figures import Report
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


@dataclass(frozen=True)
class Order:
    at: float
    kind: Kind
    iterations: int


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
    judge(report, live, simulate(context, live, GPUS, POLICY, rates, preset))
    return report


def make_orders() -> list[Order]:
    """More work than the GPUs can do at once, so that jobs wait and give way."""
    draws = random.Random(7)
    orders, at = [], 0.0
    for _ in range(JOBS):
        kind = draws.choice(KINDS)
        orders.append(Order(at, kind, round(draws.uniform(6, 40) / kind.seconds)))
        at += draws.expovariate(1 / 10)
    return orders


def play(cluster: Cluster, orders: list[Order]) -> list[dict[str, Any]]:
    began = time.monotonic()
    for order in orders:
        time.sleep(max(0.0, began + order.at - time.monotonic()))
        cluster.submit(1, "synthetic.py", arguments(order.kind, str(order.iterations)),
                       model=order.kind.name, batch_size=BATCH, iterations=order.iterations)
    cluster.wait_for(lambda: all(job["state"] in ENDED for job in cluster.all_jobs()), 900,
                     "the end of all jobs", pause=1.0)
    jobs = cluster.all_jobs()
    for job, order in zip(jobs, orders):
        job["faults"] = cluster.trail(job["job"]).faults(order.iterations)
    return jobs


def judge(report: Report, live: list[dict[str, Any]], simulated: dict[str, dict[str, str]]) -> None:
    lost = [f"job {job['job']} is {job['state']}" for job in live if job["state"] != "completed"]
    report.none_of("jobs that did not complete", lost)
    report.none_of("iterations missing or done twice",
                   [fault for job in live for fault in job["faults"]])
    compare_jct(report, live, simulated)
    report.details["preemptions"] = sum(job["preemptions"] for job in live)
