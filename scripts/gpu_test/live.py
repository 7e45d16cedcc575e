# SPDX-License-Identifier: Apache-2.0
"""Controller and agent on a machine with one GPU, with real jobs: detection, a kill -9 of the controller
under a job, preemption, jobs that share the GPU with and without turns, and memory that is free again.

With --pretend the GPU is declared, and the jobs compute on the CPU in their tiny form.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_test.report import Timed, gpu_memory
from train_test.cluster import Cluster, ExperimentError, Shape, processes_of
from train_test.trail import Attempt, Step, Trail, overlap

NAMES = ("nodes", "kill", "preempt", "share")
SETTLED = 5  # iterations of an attempt that are not counted: warm-up
PATIENCE = 180.0  # seconds for a job to start and train: torch is imported in each of its processes
MANY = 100_000  # iterations of a job that is cancelled
OVERLAP = 0.05  # of the time in a stage that two jobs may be in it, with turns
FREE_MIB = 100  # of the GPU's memory may be in use when all jobs have left, beside what was before


@dataclass(frozen=True)
class Kind:
    """A job of which a measurement is made: what it trains, and for how long."""

    name: str
    arguments: tuple[str, ...]
    iterations: int


# The loading-bound one has two loader processes; the other one computes, as its users compute it.
LOADING = Kind("loading", ("image_classification.py", "--arch", "resnet50", "--size", "published",
                           "--batch", "64", "--workers", "2"), 100)
COMPUTING = Kind("computing", ("transformer.py", "--arch", "gpt2", "--size", "published", "--batch",
                               "16", "--workers", "1"), 100)
# Waits in place of loading and computing, which two jobs can do at a time on few cores.
PRETENDED_LOADING = Kind("loading", ("synthetic.py", "--batch", "4", "--workers", "0", "--load-seconds",
                                     "0.015", "--forward-seconds", "0.01"), 40)
PRETENDED_COMPUTING = Kind("computing", ("synthetic.py", "--batch", "4", "--workers", "0",
                                         "--load-seconds", "0.0025", "--forward-seconds", "0.05"), 40)


class Live:
    def __init__(self, options: argparse.Namespace, folder: Path, report: Timed) -> None:
        self.options = options
        self.folder = folder
        self.report = report
        self.pretended = options.device == "cpu"
        self.loading = PRETENDED_LOADING if self.pretended else LOADING
        self.computing = PRETENDED_COMPUTING if self.pretended else COMPUTING
        self.before = gpu_memory() or 0
        self.leftovers = 0

    def run(self) -> None:
        for name in self.options.only:
            self.report.say(f"{name} ...")
            try:
                getattr(self, name)()
            except ExperimentError as error:
                self.report.add(name, str(error), "done", False)
        self.report.add("processes left behind", f"{self.leftovers}", "0", self.leftovers == 0)

    # ----------------------------------------------------------------------------------- helpers

    def cluster(self, name: str, policy: str) -> Cluster:
        return Cluster(self.options.trainyard, self.folder / name, policy, grace=30.0,
                       shape=Shape(gpus=1 if self.pretended else gpus_of_torch(), apart=True,
                                   found=not self.pretended),
                       python=[sys.executable], device=self.options.device)

    def close(self, cluster: Cluster) -> None:
        """To be called after a cluster's end."""
        self.leftovers += cluster.leftovers + len(list(processes_of(cluster.folder)))

    def submit(self, cluster: Cluster, kind: Kind, iterations: int, *more: str, **options: object) -> int:
        script, *arguments = kind.arguments
        return cluster.submit(1, script, [
            *arguments, "--samples", "100000", "--epochs", "1000", "--checkpoint-every", str(MANY),
            "--max-iterations", str(iterations), *more], name=kind.name, iterations=iterations,
            **options)

    def wait_end(self, cluster: Cluster, job: int) -> dict[str, object]:
        left = self.options.limit - self.report.elapsed
        return cluster.wait_end(job, min(PATIENCE, max(1.0, left)))

    def wait_steps(self, cluster: Cluster, job: int, iterations: int) -> None:
        left = self.options.limit - self.report.elapsed
        cluster.wait_steps(job, iterations, min(PATIENCE, max(1.0, left)))

    def cancel(self, cluster: Cluster, *jobs: int) -> list[Trail]:
        """What they have done, once they have left: they get notice, and save themselves."""
        cluster.call("cancel", *map(str, jobs))
        cluster.wait_for(lambda: not any(running(cluster, job) for job in jobs), PATIENCE,
                         "cancelled jobs to leave")
        return [cluster.trail(job) for job in jobs]

    def check(self, what: str, measured: str, bar: str, passed: bool) -> None:
        self.report.add(what, measured, bar, passed)

    def check_memory(self, cluster: Cluster, what: str) -> None:
        if self.pretended:
            return
        try:
            cluster.wait_for(lambda: (gpu_memory() or 0) <= self.before + FREE_MIB, 30, "free memory")
        except ExperimentError:
            pass
        used = (gpu_memory() or 0) - self.before
        self.check(f"{what}: memory of the GPU", f"{used} MiB more than before the jobs",
                   f"<= {FREE_MIB} MiB", used <= FREE_MIB)

    # ------------------------------------------------------------------------------------- parts

    def nodes(self) -> None:
        """What the driver has, the controller shows; a job sees its GPU."""
        with self.cluster("nodes", "fifo") as cluster:
            node = cluster.call("nodes")["nodes"][0]
            kind = str(node.get("gpu_type", ""))
            self.check("nodes: GPUs found", f"{node['gpus']} ({kind or 'no type'})",
                       "as many as torch sees",
                       node["gpus"] == (1 if self.pretended else gpus_of_torch()))
            said = cluster.text("run", "--gpus", "1", "--", sys.executable, "-c",
                                "import os; print('sees', os.environ['CUDA_VISIBLE_DEVICES'])")
            seen = [line for line in said.splitlines() if line.startswith("sees ")]
            self.check("run: CUDA_VISIBLE_DEVICES of a job", " ".join(seen) or said.strip(), "sees 0",
                       seen == ["sees 0"])
        self.close(cluster)

    def kill(self) -> None:
        """kill -9 of the controller under a job, and a new one: the attempt goes on throughout."""
        with self.cluster("kill", "fifo") as cluster:
            job = self.submit(cluster, self.computing, MANY)
            self.wait_steps(cluster, job, 10)
            cluster.kill_controller()
            at = cluster.trail(job).last
            self.wait_steps(cluster, job, at + 10)  # nobody is there to be asked
            cluster.start_controller()
            cluster.wait_nodes()
            self.wait_steps(cluster, job, cluster.trail(job).last + 10)
            status = cluster.status(job)
            [trail] = self.cancel(cluster, job)
            faults = trail.faults(trail.last)
            self.check("kill -9 of the controller under a job",
                       f"killed at iteration {at}; attempt {status['attempt']} is {status['state']} under "
                       f"the next one, {len(faults)} iterations missing or done twice",
                       "attempt 1 is running, 0",
                       (status["attempt"], status["state"]) == (1, "running") and not faults)
            self.check_memory(cluster, "kill -9 of the controller")
        self.close(cluster)

    def preempt(self) -> None:
        """A shorter job takes the GPU under srtf; the longer one resumes where it was."""
        with self.cluster("preempt", "srtf") as cluster:
            first = self.submit(cluster, self.computing, MANY, duration="10h")
            self.wait_steps(cluster, first, 20)
            second = self.submit(cluster, self.computing, self.computing.iterations // 2, duration="20s")
            brief = self.wait_end(cluster, second)
            resumed = cluster.trail(first).last + 10
            self.wait_steps(cluster, first, resumed)
            status = cluster.status(first)
            [trail] = self.cancel(cluster, first)
            faults = trail.faults(trail.last)
            begun = trail.attempts[-1].done
            self.check("srtf: a shorter job preempts, the longer one resumes",
                       f"attempts {status['attempt']} and {brief['attempt']}, resumed after iteration "
                       f"{begun}, {len(faults)} iterations missing or done twice", "2 and 1, 0",
                       status["attempt"] == 2 and brief["attempt"] == 1 and begun > 0 and not faults)
            self.check_memory(cluster, "preemption")
        self.close(cluster)

    def share(self) -> None:
        """A loading-bound and a compute-bound job: one after the other, then together on the GPU, with
        turns and without. Work counts in seconds of the job alone: once as turns leave it, each stage after
        the other, and once as its users run it, loading ahead."""
        kinds = (self.loading, self.computing)
        alone, stages = [], []
        with self.cluster("alone", "fifo") as cluster:
            for kind in kinds:
                job = self.submit(cluster, kind, kind.iterations // 2)
                self.wait_end(cluster, job)
                alone.append(pace(last_steps(cluster, job)))
                self.report.say(f"share: {kind.name} alone: {alone[-1]:.4f} s an iteration")
                job = self.submit(cluster, kind, kind.iterations // 2, "--interleave")
                self.wait_end(cluster, job)
                stages.append(stages_of(cluster.trail(job).attempts[-1]))
                self.report.say(f"share: its stages: {', '.join(f'{s:.4f}' for s in stages[-1])} s")
            self.check_memory(cluster, "one after the other")
        self.close(cluster)
        self.report.details["alone_s"] = alone
        self.report.details["stages_s"] = stages
        in_order = [sum(times) for times in stages]
        gains = {}
        for name, more in (("turns", ["--interleave"]), ("no turns", [])):
            paces = self.together(name, kinds, stages, more)
            gains[name] = [sum(own / now for own, now in zip(base, paces)) for base in (in_order, alone)]
        # Pretended work does not disturb other work, and how busy the CPUs are is nobody's fault.
        self.report.add("share: work in a second with turns, against one after the other, which load nothing "
                        "ahead", f"{gains['turns'][0]:.3f}", "none" if self.pretended else ">= 1",
                        self.pretended or gains["turns"][0] >= 1)
        self.report.add("share: the same against jobs that load ahead", f"{gains['turns'][1]:.3f}", "none", True)
        self.report.add("share: without turns, against jobs that load ahead", f"{gains['no turns'][1]:.3f}",
                        "none", True)

    def together(self, name: str, kinds: Sequence[Kind], stages: list[tuple[float, float, float]],
                 more: list[str]) -> list[float]:
        """Seconds of an iteration of each, while both run."""
        with self.cluster(name.replace(" ", "-"), "muri-s") as cluster:
            jobs = [self.submit(cluster, kind, MANY, *more,
                                stages=",".join(f"{seconds:.4f}" for seconds in times),
                                iteration_time=f"{sum(times):.4f}s")
                    for kind, times in zip(kinds, stages)]
            for job, kind in zip(jobs, kinds):
                self.wait_steps(cluster, job, kind.iterations // 2)
            statuses = [cluster.status(job) for job in jobs]
            both = all(status["state"] == "running" for status in statuses)
            steps = [last_steps(cluster, job) for job in jobs]
            trails = self.cancel(cluster, *jobs)
            begin = max(each[0].time for each in steps)
            end = min(each[-1].time for each in steps)
            paces = [pace(each, begin, end) for each in steps]
            self.check_memory(cluster, f"share, {name}")
        self.close(cluster)
        self.report.details[name] = {"paces_s": paces, "statuses": statuses}
        if more:
            share = overlap(trails, "forward")
            self.check(f"share, {name}: of the time in stage forward both were in it", f"{share:.3f}",
                       f"<= {OVERLAP}", share <= OVERLAP)
        shown = " and ".join(f"{seconds:.4f}" for seconds in paces)
        self.check(f"share, {name}: seconds of an iteration of each", shown, "on one GPU, both at a time",
                   both)
        return paces


def running(cluster: Cluster, job: int) -> list[int]:
    """Processes of the job that still train."""
    pids = {pid for attempt in cluster.trail(job).attempts for pid in attempt.pids.values()}
    return [pid for pid in processes_of(cluster.folder) if pid in pids]


def gpus_of_torch() -> int:
    import torch
    return torch.cuda.device_count()


def last_steps(cluster: Cluster, job: int) -> list[Step]:
    """Of the last attempt, without its first ones."""
    steps = cluster.trail(job).attempts[-1].steps()[SETTLED:]
    if len(steps) < 2:
        raise ExperimentError(f"job {job} has done too few iterations to be measured")
    return steps


def pace(steps: list[Step], begin: float = 0.0, end: float = float("inf")) -> float:
    """Seconds of an iteration between the two times."""
    times = [step.time for step in steps if begin <= step.time <= end]
    if len(times) < 2:
        raise ExperimentError("the jobs have not run at a time for long enough to be measured")
    return (times[-1] - times[0]) / (len(times) - 1)


def stages_of(attempt: Attempt) -> tuple[float, float, float]:
    """Seconds of loading, computing and exchange in an iteration. Loading is the loader's stage, of which
    the trail does not tell: what is left of the iteration."""
    steps = attempt.steps()[SETTLED:]
    lines = [line for step in steps for line in attempt.lines[step.iteration]]

    def median(name: str) -> float:
        spans = [line["stages"][name] for line in lines]
        return statistics.median(end - begin for begin, end in spans)

    forward, communication = median("forward"), median("communication")
    least = 0.0001
    return (max(pace(steps) - forward - communication, least), max(forward, least),
            max(communication, least))
