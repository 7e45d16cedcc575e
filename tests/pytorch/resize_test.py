# SPDX-License-Identifier: Apache-2.0
"""resize_test.py PROGRAM SOURCE [--smoke]: a real training job is resized and preempted.

examples/pytorch-ddp runs on a cluster of one node with two GPUs. It is resized from two processes
to one and back and preempted by draining the node. Then every sample of every epoch must have been
seen exactly once, and the losses must be those of a run that nobody has disturbed. --smoke: the job
trains undisturbed, for an epoch.
"""

import contextlib
import csv
import fcntl
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from expectations import TestFailure, expect, wait_until

EPOCHS = 3
BATCH_SIZE = 16
SAMPLES = 26 * BATCH_SIZE + 1  # the last batch of an epoch has nothing for the second process
STEPS = EPOCHS * 27
STEP_SLEEP = 0.2  # seconds; in all, twice what the resizes below take
WORLD_SIZES = [2, 1, 2, 2]  # of the attempts
PATIENCE = 300.0  # seconds for any one thing to happen


def training_command(source: Path, *options: str) -> list[str]:
    train = source / "examples" / "pytorch-ddp" / "train.py"
    return [sys.executable, "-B", str(train), f"--epochs={EPOCHS}", f"--samples={SAMPLES}",
            f"--batch-size={BATCH_SIZE}", *options]


def losses_in(log: str) -> dict[int, float]:
    """The losses by epoch."""
    return {int(epoch): float(loss)
            for epoch, loss in re.findall(r"^epoch (\d+): loss (\S+)$", log, re.MULTILINE)}


def undisturbed_losses(source: Path, folder: Path) -> dict[int, float]:
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    run = subprocess.run(training_command(source, f"--checkpoints={folder}"), text=True,
                         capture_output=True, timeout=PATIENCE, env=os.environ | variables)
    expect(run.returncode == 0, f"the training fails without a cluster:\n{run.stderr}")
    return losses_in(run.stdout)


class Cluster:
    """A user's commands to a cluster that runs one job."""

    def __init__(self, program: Path, address: str) -> None:
        self._program = program
        self._address = address

    def call(self, command: str, *arguments: str) -> str:
        run = subprocess.run(
            [self._program, command, "--controller", self._address, *arguments],
            text=True, capture_output=True, timeout=PATIENCE)
        expect(run.returncode == 0, f"trainyard {command} {arguments}: {run.stderr}")
        return run.stdout

    def job(self) -> dict[str, Any]:
        return json.loads(self.call("status", "--json", "1"))["jobs"][0]

    def wait_for_progress(self, attempt: int) -> None:
        """Until the attempt has made some steps, but not the last."""
        first: float | None = None

        def progressed() -> bool:
            nonlocal first
            job = self.job()
            expect(job["state"] not in ("completed", "failed"),
                   f"attempt {attempt}: the job is {job['state']} already: {job['reason']}")
            if job["attempt"] != attempt or job["state"] != "running":
                return False
            first = job["iterations_done"] if first is None else first
            return job["iterations_done"] >= first + 3

        wait_until(f"attempt {attempt} makes progress", progressed, PATIENCE)
        print(f"attempt {attempt} makes progress", flush=True)

    def logs(self) -> str:
        attempts = range(1, self.job()["attempt"] + 1)
        return "".join(self.call("logs", "1", "--attempt", str(number)) for number in attempts)


@contextlib.contextmanager
def running_cluster(program: Path, state: Path) -> Iterator[Cluster]:
    log = state / "up.log"
    with log.open("w") as output:
        up = subprocess.Popen(
            [program, "up", "--nodes", "1", "--gpus", "2", "--grace", "10", "--lease", "20",
             "--state", state, "--listen", "127.0.0.1:0"],
            stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until("the cluster comes up", lambda: "submit with" in log.read_text(), PATIENCE)
        address = re.search(r" at ([\d.]+:\d+);", log.read_text())
        expect(address is not None, f"no address in {log.read_text()}")
        yield Cluster(program, address[1])
    finally:
        up.terminate()  # it stops the job's processes
        try:
            up.wait(30)
        except subprocess.TimeoutExpired:
            up.kill()
            up.wait()
            raise


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Clusters that share a machine give their jobs the same MASTER_PORTs."""
    with (Path(tempfile.gettempdir()) / "trainyard-pytorch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def disturb(cluster: Cluster) -> None:
    """Resizes and preempts the job, and waits for its end."""
    node = json.loads(cluster.call("nodes", "--json"))["nodes"][0]["node"]
    cluster.wait_for_progress(1)
    cluster.call("resize", "1", "--gpus", "1")
    cluster.wait_for_progress(2)
    cluster.call("resize", "1", "--gpus", "2")
    cluster.wait_for_progress(3)
    cluster.call("drain", node, "--now")
    wait_until("the drained node is free", lambda: cluster.job()["state"] == "waiting", PATIENCE)
    cluster.call("undrain", node)
    cluster.wait_for_progress(4)
    wait_until("the job ends", lambda: cluster.job()["state"] in ("completed", "failed"), PATIENCE)


def check_seen(path: Path) -> None:
    samples: dict[int, Counter[int]] = defaultdict(Counter)  # by epoch
    attempts: dict[int, set[int]] = defaultdict(set)  # by epoch
    ranks: dict[int, set[int]] = defaultdict(set)  # by attempt
    with path.open() as file:
        for line in csv.reader(file):
            attempt, rank, epoch, _iteration, sample = map(int, line)
            samples[epoch][sample] += 1
            attempts[epoch].add(attempt)
            ranks[attempt].add(rank)
    expect(sorted(samples) == list(range(EPOCHS)), f"epochs {sorted(samples)}")
    once = Counter(range(SAMPLES))
    for epoch, seen in samples.items():
        expect(seen == once, f"epoch {epoch}: {dict(once - seen)} of the samples are missing, "
                             f"{dict(seen - once)} were seen too often")
    expect([sorted(ranks[attempt]) for attempt in sorted(ranks)] ==
           [list(range(size)) for size in WORLD_SIZES], f"ranks by attempt: {dict(ranks)}")
    expect(any(len(shared) > 1 for shared in attempts.values()),
           "the job was never stopped within an epoch")


def check_losses(losses: dict[int, float], expected: dict[int, float]) -> None:
    expect(sorted(losses) == list(range(EPOCHS)), f"losses of the epochs: {losses}")
    expect(all(math.isfinite(loss) for loss in losses.values()), f"losses: {losses}")
    expect(losses[EPOCHS - 1] < losses[0], f"the loss has not fallen: {losses}")
    expect(all(math.isclose(losses[epoch], expected[epoch], rel_tol=1e-3) for epoch in losses),
           f"losses {losses}; undisturbed {expected}")


def run_test(program: Path, source: Path, scratch: Path) -> None:
    expected = undisturbed_losses(source, scratch / "undisturbed")
    state = scratch / "state"
    state.mkdir()
    with running_cluster(program, state) as cluster:
        # Without checkpoints but for those that a notice brings about.
        command = training_command(source, f"--step-sleep={STEP_SLEEP}",
                                   f"--checkpoint-every={STEPS + 1}")
        cluster.call("submit", "--gpus", "2", "--iterations", str(STEPS), "--", *command)
        try:
            disturb(cluster)
            job = cluster.job()
            expect(job["state"] == "completed", f"the job is {job['state']}: {job['reason']}")
            expect(job["failures"] == 0, f"{job['failures']} attempts have failed")
            expect(job["iterations_done"] == STEPS, f"{job['iterations_done']} iterations")
            check_seen(next(state.glob("nodes/*/checkpoints/1/seen.csv")))
            check_losses(losses_in(cluster.logs()), expected)
        except TestFailure:
            with contextlib.suppress(TestFailure):
                print(cluster.logs(), file=sys.stderr)
            raise
    print(f"{STEPS} steps in {len(WORLD_SIZES)} attempts; losses {expected}")


def smoke_test(program: Path, source: Path, scratch: Path) -> None:
    with running_cluster(program, scratch) as cluster:
        command = training_command(source, "--epochs=1")
        cluster.call("submit", "--gpus", "2", "--", *command)
        wait_until("the job ends", lambda: cluster.job()["state"] in ("completed", "failed"),
                   PATIENCE)
        expect(cluster.job()["state"] == "completed", f"{cluster.job()}\n{cluster.logs()}")
        expect(sorted(losses_in(cluster.logs())) == [0], f"one epoch:\n{cluster.logs()}")


def main() -> int:
    test = smoke_test if sys.argv[3:] == ["--smoke"] else run_test
    with one_at_a_time(), tempfile.TemporaryDirectory(prefix="trainyard-pytorch-") as scratch:
        try:
            test(Path(sys.argv[1]), Path(sys.argv[2]), Path(scratch))
        except TestFailure as failure:
            print(failure, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
