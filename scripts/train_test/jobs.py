# SPDX-License-Identifier: Apache-2.0
"""Jobs that are submitted to a live cluster at their times, and what becomes of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from train_test.cluster import ENDED, Cluster
from train_test.figures import Report

PATIENCE = 900  # seconds from the last submission to the end of all


@dataclass(frozen=True)
class Order:
    at: float  # seconds after the first one
    iterations: int
    arguments: list[str]  # of synthetic.py
    options: dict[str, Any]  # of `trainyard submit`
    gpus: int | str = 1


def play(cluster: Cluster, orders: Sequence[Order]) -> list[dict[str, Any]]:
    """The statuses of all jobs at the end, each with what is wrong with its chain (`faults`)."""
    began = time.monotonic()
    for order in orders:
        time.sleep(max(0.0, began + order.at - time.monotonic()))
        cluster.submit(order.gpus, "synthetic.py", order.arguments, iterations=order.iterations,
                       **order.options)
    cluster.wait_for(lambda: all(job["state"] in ENDED for job in cluster.all_jobs()), PATIENCE,
                     "the end of all jobs", pause=1.0)
    jobs = cluster.all_jobs()
    for job, order in zip(jobs, orders):
        job["faults"] = [] if job["state"] == "rejected" \
            else cluster.trail(job["job"]).faults(order.iterations)
    return jobs


def judge_jobs(report: Report, jobs: list[dict[str, Any]], name: str = "") -> None:
    """All of them have completed, and have done each iteration once."""
    what = f"{name}: " if name else ""
    report.none_of(f"{what}jobs that did not complete", [
        f"job {job['job']} is {job['state']}" for job in jobs if job["state"] != "completed"])
    report.none_of(f"{what}iterations missing or done twice",
                   [fault for job in jobs for fault in job["faults"]])
