# SPDX-License-Identifier: Apache-2.0
"""batches: two trainings that adapt their batches under `pollux`, and whether they are as good as they
have said before.

A pass takes a time of its own and one for each sample, by waiting. The targets are noisy: the nearer
a training is to its end, the noisier is its gradient, and the larger the batch that is worth while.
"""

import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from train_test.cluster import ENDED, SOURCE, Cluster, ExperimentError, Shape
from train_test.context import Context
from train_test.figures import Report
from train_test.trail import Step, Trail

sys.path.append(str(SOURCE / "python"))

from trainyard.train.goodput import (  # noqa: E402
    BatchLimits,
    GoodputModel,
    GradientNoise,
    StepTimes,
    split_for,
)

GPUS = 4
BATCH = 16
MOST_BATCH = 512
MOST_PART = 64
SAMPLES = 100000
ITERATIONS = 240
GROWN = 2.0  # times the initial batch that the last one is at least
TOLERANCE = 0.1  # of the predicted goodput
SETTLED = 3  # iterations after a change that are not counted
COUNTED = 9  # iterations that are: the next ones, as the noise goes on changing
MEASURED = 12  # iterations before which a training knows nothing of a batch
PATIENCE = 240.0


@dataclass(frozen=True)
class Kind:
    name: str
    seconds: float  # of a pass
    sample_seconds: float  # of each sample in it
    noise: float
    rate: float

    def arguments(self) -> list[str]:
        return ["--samples", str(SAMPLES), "--batch", str(BATCH), "--epochs", "1", "--workers", "0",
                "--most-batch", str(MOST_BATCH), "--most-part", str(MOST_PART),
                "--choose-every", "8", "--max-iterations", str(ITERATIONS), "--checkpoint-every",
                "1000", "--forward-seconds", str(self.seconds), "--sample-seconds",
                str(self.sample_seconds), "--target-noise", str(self.noise),
                "--lr", str(self.rate)]


KINDS = (Kind("quick", 0.2, 0.0035, 1.0, 0.00008), Kind("slow", 0.25, 0.003, 1.5, 0.00008))


@dataclass(frozen=True)
class Told:
    """What the controller knew of a job at a time."""

    time: float
    model: GoodputModel


@dataclass
class Stretch:
    """Iterations of one attempt with the same batch, in a row."""

    world: int
    batch: int
    steps: list[Step] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Of an iteration: the median, which a checkpoint or a busy machine does not change."""
        times = [step.time for step in self.steps[SETTLED:SETTLED + COUNTED]]
        return statistics.median(after - before for before, after in zip(times, times[1:]))


def run(context: Context) -> Report:
    report = Report("batches")
    profiles = context.folder / "profiles.csv"
    context.folder.mkdir(parents=True, exist_ok=True)
    write_profiles(profiles)
    with context.cluster("pollux:interval=10", shape=Shape(gpus=GPUS),
                         profiles=profiles) as cluster:
        jobs = {cluster.submit("1:2", "synthetic.py", kind.arguments(), model=kind.name,
                               batch_size=BATCH, iterations=ITERATIONS): kind for kind in KINDS}
        told = listen(cluster, list(jobs))
        for job, kind in jobs.items():
            status = cluster.wait_end(job, 10)
            judge(report, kind.name, cluster.trail(job), told[job])
            report.details[f"{kind.name}: attempts"] = status["attempt"]
            report.details[f"{kind.name}: noise scales told"] = [
                round(BATCH * each.model.noise.variance / each.model.noise.square)
                for each in told[job] if each.model.noise.square > 0]
    return report


def write_profiles(file: Path) -> None:
    """What the jobs go by until they report: as fast as they have GPUs."""
    rows = [f"{kind.name},{BATCH},{gpus},{gpus / (kind.seconds + BATCH * kind.sample_seconds):.4f}"
            for kind in KINDS for gpus in (1, 2, 4)]
    file.write_text("\n".join(["model,batch_size,gpus,iterations_per_second", *rows]) + "\n")


def listen(cluster: Cluster, jobs: list[int]) -> dict[int, list[Told]]:
    """Looks at the jobs until all have ended: each goodput that they have told."""
    told: dict[int, list[Told]] = {job: [] for job in jobs}
    end = time.monotonic() + PATIENCE
    while True:
        statuses = [cluster.status(job) for job in jobs]
        for job, status in zip(jobs, statuses):
            metrics = {each["name"]: each["value"] for each in status.get("metrics") or []}
            model = model_in(metrics)
            if model is not None and (not told[job] or told[job][-1].model != model):
                told[job].append(Told(time.time(), model))
        if all(status["state"] in ENDED for status in statuses):
            return told
        if time.monotonic() > end:
            raise ExperimentError(f"waited {PATIENCE:.0f} s in vain for the end of the jobs")
        time.sleep(0.3)


def model_in(metrics: dict[str, float]) -> GoodputModel | None:
    """What a job tells of itself, if it tells all of it."""
    goodput = {name.partition(".")[2]: value for name, value in metrics.items()
               if name.startswith("goodput.")}
    if len(goodput) < 15:
        return None
    times = StepTimes(**{name: goodput[name] for name in StepTimes.__dataclass_fields__})
    limits = BatchLimits(*(int(goodput[name]) for name in (
        "initial_batch", "most_batch", "least_part", "most_part")))
    return GoodputModel(times, GradientNoise(goodput["square"], goodput["variance"]), limits)


def stretches_of(trail: Trail) -> list[Stretch]:
    found: list[Stretch] = []
    for attempt in trail.attempts:
        began = len(found)
        for step in attempt.steps():
            if len(found) == began or found[-1].batch != len(step.samples):
                found.append(Stretch(attempt.world_size, len(step.samples)))
            found[-1].steps.append(step)
    return found


def judge(report: Report, name: str, trail: Trail, told: list[Told]) -> None:
    report.none_of(f"{name}: iterations missing or done twice", trail.faults(ITERATIONS))
    stretches = stretches_of(trail)
    last = stretches[-1].batch
    sizes = [stretches[0].batch]
    sizes += [each.batch for before, each in zip(stretches, stretches[1:])
              if each.batch != before.batch]
    report.add(f"{name}: batches", "-".join(map(str, sizes)), f"at last >= {GROWN * BATCH:g}",
               last >= GROWN * BATCH)
    compared = predictions(stretches, told)
    report.details[name] = compared
    for what in ("goodput", "throughput"):
        ratios = [each[what]["measured"] / each[what]["predicted"] for each in compared]
        ratio = statistics.median(ratios) if ratios else 0.0
        report.add(f"{name}: {what} measured / predicted, median of {len(ratios)} batches",
                   f"{ratio:.3f}", f"1 +- {TOLERANCE:g}", abs(ratio - 1) <= TOLERANCE)


def predictions(stretches: list[Stretch], told: list[Told]) -> list[dict[str, Any]]:
    """Of each stretch with a batch that is long enough, once two sizes are known."""
    compared: list[dict[str, Any]] = []
    known: set[tuple[int, int]] = set()
    for stretch in stretches:
        untried = stretch.steps[:MEASURED - 2][-1].time  # what it has told is on its way till then
        counted = stretch.steps[:SETTLED + COUNTED][-1].time
        before = [each.model for each in told if each.time < untried]
        after = [each.model for each in told if each.time > counted]
        is_known = len(known) >= 2 and stretch.world in {world for world, _ in known}
        if is_known and before and after and len(stretch.steps) >= SETTLED + COUNTED:
            split = split_for(stretch.batch, stretch.world, before[-1].limits)
            throughput = {"predicted": before[-1].throughput(1, stretch.world, split),
                          "measured": stretch.batch / stretch.seconds}
            efficiency = {"predicted": before[-1].efficiency(stretch.batch),
                          "measured": after[0].efficiency(stretch.batch)}
            goodput = {when: throughput[when] * efficiency[when] for when in throughput}
            compared.append({"gpus": stretch.world, "batch": stretch.batch,
                             "iterations": len(stretch.steps), "goodput": goodput,
                             "throughput": throughput, "efficiency": efficiency})
        if len(stretch.steps) >= MEASURED:
            known.add((stretch.world, stretch.batch))
    return compared
