# SPDX-License-Identifier: Apache-2.0
"""locality: jobs with data sets on agents with caches, with and without the option of placements.

A node fetches a data set in as long as a job trains, and has room for half of them. A job has one
process and one GPU; nodes have one.
"""

import os
import random
import statistics
from pathlib import Path
from typing import Any

from train_test.cluster import Shape
from train_test.context import Context
from train_test.figures import Report
from train_test.jobs import Order, judge_jobs, play
from train_test.profiles import profile, workload
from train_test.simulation import compare_jct, simulate

NODES = 4
BATCH = 16
JOBS = 20
SECONDS = 0.2  # of an iteration
SETS = 4
SET_MIB = 16
CACHE_MIB = 40  # of a node: two sets
RATE_MB = 2  # of a fetch, MB/s
POLICY = "fifo"
MODEL = "net"


def arguments(iterations: str) -> list[str]:
    return ["--samples", "100000", "--batch", str(BATCH), "--epochs", "1", "--workers", "0",
            "--max-iterations", iterations, "--forward-seconds", str(SECONDS),
            "--checkpoint-every", "1000"]


def run(context: Context) -> Report:
    report = Report("locality")
    costs, rates = context.folder / "costs", context.folder / "rates"
    measure = {"batch": BATCH, "iterations": 10, "warmup": 3, "noise": 30, "gpus": 1}
    profile(context, "overhead", costs, MODEL, measure, workload(*arguments("1000000")))
    profile(context, "throughput", rates, MODEL, measure, workload(*arguments("{iterations}")))
    options = ["--profiles", rates, "--preset", costs / "overhead.toml"]
    sets = make_sets(context.folder / "home")
    means = {saved: compare(context, report, saved, sets, options) for saved in (0, 1)}
    live, simulated = (means[1][at] / means[0][at] for at in range(2))
    report.add("mean JCT with the option / without", f"{live:.3f}, simulated {simulated:.3f}",
               "< 1", live < 1)
    return report


def make_sets(home: Path) -> list[Path]:
    """Folders with a file of bytes that cannot be compressed."""
    sets = [home / f"set{number}" for number in range(SETS)]
    for folder in sets:
        folder.mkdir(parents=True)
        (folder / "samples").write_bytes(os.urandom(SET_MIB << 20))
    return sets


def make_orders(sets: list[Path]) -> list[Order]:
    """Less work than the nodes can do, so that a job may have a choice."""
    draws = random.Random(11)
    orders, at = [], 0.0
    for _ in range(JOBS):
        folder = draws.choice(sets)
        iterations = round(draws.uniform(6, 16) / SECONDS)
        orders.append(Order(at, iterations, arguments(str(iterations)),
                            {"model": MODEL, "batch_size": BATCH,
                             "data_set": f"{folder.name}={folder}:{SET_MIB}"}))
        at += draws.expovariate(1 / 5)
    return orders


def compare(context: Context, report: Report, saved: int, sets: list[Path],
            options: list[str | Path]) -> tuple[float, float]:
    """saved: the option's value. The mean JCT, live and simulated."""
    name = f"locality={saved}"
    placement = ["--placement", f"consolidated:{name}"]
    orders = make_orders(sets)
    with context.cluster(
            POLICY, shape=Shape(nodes=NODES, gpus=1), options=[
                *map(str, options), *placement, "--data-cache", f"{CACHE_MIB}MB", "--data-rate",
                f"{RATE_MB * 1_000_000}"]) as cluster:
        live = play(cluster, orders)
    judge_jobs(report, live, name)
    stated = {job["job"]: order.options["data_set"] for job, order in zip(live, orders)}
    simulated = simulate(
        context, live, write_cluster(context.folder / "cached.toml"),
        ["--policy", POLICY, *placement, *options],
        {"data_set": lambda job, _: stated[job["job"]].partition("=")[0],
         "data_mib": SET_MIB,
         "data_home": lambda job, _: stated[job["job"]].partition("=")[2].rpartition(":")[0]})
    compare_jct(report, live, simulated, name)
    return mean_jct(live), statistics.mean(float(row["jct"]) for row in simulated.values())


def write_cluster(file: Path) -> Path:
    file.write_text(f"[[nodes]]\ncount = {NODES}\ngpus = 1\ncache_gb = {CACHE_MIB / 1024}\n"
                    f"remote_mb_per_s = {RATE_MB}\n")
    return file


def mean_jct(live: list[dict[str, Any]]) -> float:
    return statistics.mean(job["ended"] - job["submitted"] for job in live)
