# SPDX-License-Identifier: Apache-2.0
"""mixed: workloads of all kinds under six policies, with drains and resizes, and none is lost."""

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train_test.cluster import ENDED, Cluster, ExperimentError, Shape
from train_test.context import Context
from train_test.figures import Report

POLICIES = ("elasticflow:slack=10", "muri-s", "tiresias:thresholds=20/60", "gandiva:quantum=15",
            "srtf", "torchloader")
SECONDS = 60.0
SHAPE = {"nodes": 2, "gpus": 2}
LIVE = 5  # jobs at once
PAUSE = (5.0, 12.0)  # seconds between disturbances


@dataclass(frozen=True)
class Kind:
    """A workload; iterations per second and stages are what its user thinks of it."""

    name: str
    script: str
    arguments: tuple[str, ...]
    batch: int
    rate: float
    iterations: tuple[int, int]
    stages: str = "0.02,0.05,0.01"


KINDS = (
    Kind("resnet18", "image_classification.py", ("--arch", "resnet18"), 16, 15, (30, 90)),
    Kind("vgg16", "image_classification.py", ("--arch", "vgg16"), 16, 20, (30, 90)),
    Kind("mobilenet", "image_classification.py", ("--arch", "mobilenet_v2"), 16, 15, (30, 90)),
    Kind("bert", "transformer.py", ("--arch", "bert"), 16, 10, (30, 80)),
    Kind("gpt2", "transformer.py", ("--arch", "gpt2"), 16, 10, (30, 80)),
    Kind("lstm", "lstm.py", (), 16, 25, (40, 120)),
    Kind("speech", "speech.py", (), 8, 8, (20, 60)),
    Kind("ncf", "recommendation.py", (), 128, 60, (60, 200)),
    Kind("dqn", "reinforcement.py", (), 32, 80, (80, 250)),
    Kind("waiting", "synthetic.py", ("--load-seconds", "0.005", "--forward-seconds", "0.1"), 16, 8,
         (40, 120), "0.08,0.1,0.01"),
)


@dataclass
class Run:
    """Of one policy: the jobs, and what they have to have done."""

    iterations: dict[int, int]
    attempts: int = 0
    drains: int = 0
    resizes: int = 0


def run(context: Context) -> Report:
    report = Report("mixed")
    for policy in POLICIES:
        print(f"mixed: {policy} for {context.seconds or SECONDS:g} s", flush=True)
        try:
            play(context, report, policy, context.seconds or SECONDS)
        except ExperimentError as error:  # the others are still to be tried
            report.add(f"{policy.partition(':')[0]}: the run itself", str(error), "done", False)
    return report


def play(context: Context, report: Report, policy: str, seconds: float) -> None:
    name = policy.partition(":")[0]
    draws = random.Random(policy)
    with context.cluster(policy, shape=Shape(**SHAPE, cpus=6 if name == "torchloader" else None),
                         profiles=write_profiles(context.folder, name)) as cluster:
        done = drive(cluster, name, draws, seconds)
        jobs = cluster.all_jobs()
        lost = [f"job {job['job']} ({job['request']['name']}) is {job['state']}: {job['reason']}"
                for job in jobs if job["state"] != "completed"]
        faults = []
        for job, iterations in done.iterations.items():
            trail = cluster.trail(job)
            done.attempts += len(trail.attempts)
            faults += [f"job {job}: {fault}" for fault in trail.faults(iterations)]
    report.add(f"{name}: jobs, attempts, drains, resizes asked for",
               f"{len(done.iterations)}, {done.attempts}, {done.drains}, {done.resizes}",
               "some jobs", bool(done.iterations))
    report.none_of(f"{name}: jobs lost", lost)
    report.none_of(f"{name}: iterations missing or done twice", faults)


def drive(cluster: Cluster, name: str, draws: random.Random, seconds: float) -> Run:
    """Submits for three quarters of the time, disturbs meanwhile, then waits for all."""
    done = Run({})
    end = time.monotonic() + 0.75 * seconds
    disturbance = time.monotonic() + PAUSE[1]
    while time.monotonic() < end:
        live = cluster.call("status")["jobs"]
        while len(live) < LIVE:
            job, iterations = submit(cluster, name, draws)
            done.iterations[job] = iterations
            live.append({"job": job, "state": "submitted"})
        if time.monotonic() > disturbance:
            disturb(cluster, name, draws, live, done)
            disturbance = time.monotonic() + draws.uniform(*PAUSE)
        time.sleep(0.5)
    cluster.wait_for(lambda: all(job["state"] in ENDED for job in cluster.all_jobs()),
                     300 + seconds, "the end of all jobs", pause=1.0)
    return done


def submit(cluster: Cluster, name: str, draws: random.Random) -> tuple[int, int]:
    """The job, and its iterations."""
    kind = draws.choice(KINDS)
    iterations = draws.randint(*kind.iterations)
    gpus = draws.choice((1, 1, 1, 2))
    arguments = [*kind.arguments, "--max-iterations", str(iterations), "--epochs", "100",
                 "--batch", str(kind.batch), "--checkpoint-every", "25", "--workers", "1"]
    options: dict[str, Any] = {"name": kind.name, "iterations": iterations, "min_gpus": 1,
                               "max_gpus": 2}
    if name == "elasticflow":
        options |= {"model": kind.name, "batch_size": kind.batch}
        if draws.random() < 0.5:
            options["deadline"] = f"{draws.uniform(300, 1200):.0f}s"
    elif name == "muri-s":
        options["stages"] = kind.stages
    elif name == "torchloader":
        options |= {"model": kind.name, "batch_size": kind.batch, "loader_workers": 2}
    else:
        options["duration"] = f"{3 + iterations / kind.rate:.0f}s"
    return cluster.submit(gpus, kind.script, arguments, **options), iterations


def disturb(cluster: Cluster, name: str, draws: random.Random, live: list[dict[str, Any]],
            done: Run) -> None:
    running = [job["job"] for job in live if job["state"] == "running"]
    if draws.random() < 0.5 or name == "elasticflow" or not running:
        node = f"n{draws.randrange(SHAPE['nodes'])}"
        cluster.drain(node)
        time.sleep(draws.uniform(1, 4))
        cluster.undrain(node)
        done.drains += 1
        return
    try:
        cluster.resize(draws.choice(running), draws.choice((1, 2)))
        done.resizes += 1
    except ExperimentError as error:  # it has ended meanwhile, or the policy does not take it
        print(f"mixed: {name}: {error}")


def write_profiles(folder: Path, name: str) -> Path | None:
    """What a policy has to know of the models, if it has to."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "elasticflow":
        rows = [f"{kind.name},{kind.batch},{gpus},{kind.rate * gpus ** 0.5:.3f}" for kind in KINDS
                for gpus in (1, 2)]
        file = folder / "profiles.csv"
        file.write_text("\n".join(["model,batch_size,gpus,iterations_per_second", *rows]) + "\n")
        return file
    if name == "torchloader":
        file = folder / "models.csv"
        file.write_text("\n".join(["model,params,flops", *(f"{kind.name},100000,1000000"
                                                           for kind in KINDS)]) + "\n")
        return file
    return None
