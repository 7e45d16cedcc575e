# SPDX-License-Identifier: Apache-2.0
"""resume: a training that is preempted and resized goes on as if nothing had happened."""

import statistics
import time

from train_test.cluster import Cluster
from train_test.context import Context
from train_test.figures import Report
from train_test.trail import Trail

SAMPLES, BATCH, EPOCHS = 410, 16, 4
ITERATIONS = -(-SAMPLES // BATCH) * EPOCHS
TRAINING = ["--samples", str(SAMPLES), "--batch", str(BATCH), "--epochs", str(EPOCHS),
            "--forward-seconds", "0.05", "--load-seconds", "0.001", "--workers", "1",
            "--checkpoint-every", "10"]
LOSS_TOLERANCE = 0.01  # of the mean loss
PATIENCE = 180.0  # seconds for anything


def run(context: Context) -> Report:
    report = Report("resume")
    with context.cluster("srtf") as cluster:
        undisturbed = train(cluster, 2, [])
        preempted = train(cluster, 2, [
            (12, "outrank"), (30, "drain"), (48, "outrank"), (66, "drain"), (84, "outrank")])
        resized = train(cluster, 1, [
            (8, "drain"), (20, "resize 2"), (30, "outrank"), (42, "resize 4"), (52, "drain"),
            (66, "resize 2"), (76, "outrank"), (90, "drain")])
    judge(report, "undisturbed, 2 processes", undisturbed, undisturbed)
    judge(report, "5 preemptions, 2 processes", preempted, undisturbed)
    judge(report, "5 preemptions, resized 1-2-4-2", resized, undisturbed)
    report.add("5 preemptions, 2 processes: attempts", f"{len(preempted.attempts)}", ">= 6",
               len(preempted.attempts) >= 6)
    worlds = [each.world_size for each in resized.attempts if each.steps()]
    changes = [size for size, before in zip(worlds, [0, *worlds]) if size != before]
    report.add("5 preemptions, resized: processes over time", "-".join(map(str, changes)),
               "1-2-4-2", changes == [1, 2, 4, 2])
    report.add("5 preemptions, 2 processes: parameters against undisturbed",
               "equal bit by bit" if same_parameters(preempted, undisturbed) else "different",
               "equal bit by bit", same_parameters(preempted, undisturbed))
    return report


def same_parameters(one: Trail, other: Trail) -> bool:
    return one.parameters is not None and one.parameters == other.parameters


def train(cluster: Cluster, gpus: int, events: list[tuple[int, str]]) -> Trail:
    """The trail of a training to which these things happen at these iterations."""
    job = cluster.submit(gpus, "synthetic.py", TRAINING, duration="1h", min_gpus=1, max_gpus=4)
    for iteration, event in events:
        cluster.wait_steps(job, iteration, PATIENCE)
        disturb(cluster, job, event)
    lost = cluster.wait_end(job, PATIENCE)["preemptions"]
    print(f"resume: job {job} has ended after {lost} preemptions", flush=True)
    return cluster.trail(job)


def disturb(cluster: Cluster, job: int, event: str) -> None:
    """Does it, and waits until the job trains again."""
    attempt = cluster.status(job)["attempt"]
    if event == "drain":
        cluster.drain()
        cluster.wait_for(lambda: cluster.status(job)["state"] == "waiting", PATIENCE, "the drain")
        cluster.undrain()
    elif event == "outrank":  # a shorter job that needs all GPUs
        shorter = cluster.call("submit", "--gpus", "4", "--duration", "2s", "--workers", "per-node",
                               "--", "/bin/sleep", "1")["job"]
        cluster.wait_end(shorter, PATIENCE)
    else:
        cluster.resize(job, int(event.split()[1]))
    cluster.wait_for(lambda: cluster.trail(job).attempts[-1].number > attempt, PATIENCE,
                     f"job {job} to train again after: {event}")
    time.sleep(0.2)


def judge(report: Report, name: str, trail: Trail, undisturbed: Trail) -> None:
    report.none_of(f"{name}: iterations missing or done twice", trail.faults(ITERATIONS))
    report.none_of(f"{name}: epochs in which a sample is missing or twice",
                   trail.sample_faults(SAMPLES))
    if trail is undisturbed:
        return
    losses, others = ([step.loss for step in each.chain] for each in (trail, undisturbed))
    apart = max(abs(one - other) for one, other in zip(losses, others)) / statistics.mean(others)
    report.at_most(f"{name}: loss apart from undisturbed, share of its mean", apart, LOSS_TOLERANCE)
    report.details[name] = {"losses": losses, "attempts": [
        (each.number, each.world_size, each.done) for each in trail.attempts]}
