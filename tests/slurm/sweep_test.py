# SPDX-License-Identifier: Apache-2.0
"""sweep_test.py PROGRAM SOURCE [--smoke]: `sweep --slurm` against a real Slurm.

Starts munged, slurmctld and two slurmd on loopback in a temporary folder, and ends them. A sweep is
interrupted, killed, loses a task and is finished: its results.csv must be that of a sweep on this
machine, and nothing may have been submitted twice but what was lost. --smoke: a sweep that nobody
disturbs.
"""

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from expectations import TestFailure, expect, wait_until

PATIENCE = 300.0  # seconds for any one thing to happen
NODES = 2
SEEDS = 10
MAX_ARRAY_SIZE = 5  # tasks in an array: one less, so that several arrays are needed
EXPERIMENT = """
[[trace]]
name = "made"
generate = {{style = "mix", jobs = 60, cluster-gpus = 16, seed = "{{seed}}"}}
[[cluster]]
name = "c"
spec = "16x8"
[[run]]
label = "it's las"
policy = "las"
[[run]]
label = "broken"
policy = "las:quantm=3"
[axes]
seed = {seeds}
[[exclude]]
run = "broken"
seed = {more_seeds}
"""
CONFIGURATION = """
ClusterName=trainyard-test
SlurmctldHost=localhost
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=50000,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
MaxArraySize={max_array_size}
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Slurm:
    """Controller and nodes; commands find it through SLURM_CONF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        ports = free_ports(NODES + 1)
        nodes = "\n".join(
            f"NodeName=n{i} NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[i + 1]} CPUs=2 "
            "RealMemory=1000" for i in range(NODES))
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(CONFIGURATION.format(
            port=ports[0], folder=folder, user=getpass.getuser(), nodes=nodes,
            max_array_size=MAX_ARRAY_SIZE))
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self, *command: str) -> None:
        log = (self.folder / f"{Path(command[0]).name}-{len(self.processes)}.log").open("wb")
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log,
                                               env=self.environment, cwd=self.folder))

    def start_all(self) -> None:
        path = self.folder
        (path / "munge.key").write_bytes(os.urandom(1024))
        (path / "munge.key").chmod(0o600)
        self.start("munged", "--foreground", "--force", f"--socket={path}/munge.socket",
                   f"--key-file={path}/munge.key", f"--pid-file={path}/munge.pid",
                   f"--seed-file={path}/munge.seed", f"--log-file={path}/munge.log")
        wait_until("munged has no socket", (path / "munge.socket").exists, PATIENCE)
        self.start("slurmctld", "-D", "-f", str(path / "slurm.conf"))
        for i in range(NODES):
            self.start("slurmd", "-D", "-N", f"n{i}", "-f", str(path / "slurm.conf"))
        wait_until("the nodes are not idle", lambda: self.says(
            "sinfo", "--noheader", "--Node", "--format=%t").split() == ["idle"] * NODES, PATIENCE)

    def says(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=False).stdout

    def queue(self) -> list[str]:
        return self.says("squeue", "--noheader", "--array", "--format=%F_%K").split()

    def set_nodes(self, state: str) -> None:
        self.says("scontrol", "update", f"nodename=n[0-{NODES - 1}]", f"state={state}",
                  "reason=test")

    def logs(self) -> str:
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-1500:]}"
                         for log in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        if self.queue():
            self.says("scancel", f"--user={getpass.getuser()}")
            with contextlib.suppress(TestFailure):
                wait_until("tasks are not cancelled", lambda: not self.queue(), PATIENCE)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def running_slurm(folder: Path) -> Iterator[Slurm]:
    slurm = Slurm(folder)
    try:
        slurm.start_all()
        yield slurm
    except TestFailure:
        print(slurm.logs(), file=sys.stderr)
        raise
    finally:
        slurm.stop()


class Sweep:
    def __init__(self, program: str, slurm: Slurm, folder: Path) -> None:
        self.program = program
        self.slurm = slurm
        self.folder = folder
        seeds = list(range(SEEDS))
        (folder / "e.toml").write_text(EXPERIMENT.format(seeds=seeds, more_seeds=seeds[1:]))

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, "sweep", "e.toml", *options], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.slurm.environment, cwd=self.folder)

    def start_on_slurm(self, *options: str) -> subprocess.Popen[str]:
        return self.start("--slurm", "--out", "out", "--slurm-grace", "1", *options)

    def arrays(self) -> int:
        return len(list((self.folder / "out" / "slurm").glob("*.tasks")))

    def csv(self, out: str) -> str:
        return (self.folder / out / "results.csv").read_text()


def disturbed_sweep(sweep: Sweep) -> None:
    slurm = sweep.slurm
    arrays = -(-(SEEDS + 1) // (MAX_ARRAY_SIZE - 1))
    slurm.set_nodes("drain")

    interrupted = sweep.start_on_slurm()
    wait_until("not all tasks are submitted", lambda: len(slurm.queue()) == SEEDS + 1, PATIENCE)
    time.sleep(2)  # sbatch has told it
    interrupted.send_signal(signal.SIGINT)
    _, said = interrupted.communicate(timeout=PATIENCE)
    expect(interrupted.returncode == 1 and "scancel " in said, said)
    expect(len(slurm.queue()) == SEEDS + 1, "tasks have gone with the sweep")

    killed = sweep.start_on_slurm()
    time.sleep(1)
    killed.kill()
    killed.communicate(timeout=PATIENCE)
    expect(sweep.arrays() == arrays, f"{sweep.arrays()} arrays; expected {arrays}")

    slurm.says("scancel", slurm.queue()[0])
    slurm.set_nodes("resume")
    last = sweep.start_on_slurm()
    _, said = last.communicate(timeout=PATIENCE)
    expect(last.returncode == 1 and "1 of 11 cells failed:" in said, said)
    expect(sweep.arrays() == arrays + 1, f"{sweep.arrays()} arrays; expected {arrays} and one "
           "for the lost task")


def tasks_without_results(sweep: Sweep) -> None:
    """A task that never gives a result fails with the end of its log, after three attempts."""
    lost = sweep.start("--slurm", "--out", "lost", "--slurm-grace", "0", "--cells-per-task", "11",
                       "--slurm-args", "--export=NONE,PATH=/nowhere")
    _, said = lost.communicate(timeout=PATIENCE)
    expect(lost.returncode == 1 and "11 of 11 cells failed:" in said, said)
    expect("its Slurm task ended 3 times without a result" in said and "sed: not found" in said,
           said)


def packed_sweep(sweep: Sweep) -> None:
    packed = sweep.start("--slurm", "--out", "packed", "--cells-per-task", "4")
    packed.communicate(timeout=PATIENCE)
    expect(sweep.csv("packed") == sweep.csv("here"), "several cells in a task: results.csv differs")


def main() -> int:
    program = sys.argv[1]
    smoke = sys.argv[3:] == ["--smoke"]
    with tempfile.TemporaryDirectory(prefix="trainyard-slurm-") as name:
        folder = Path(name)
        (folder / "slurm").mkdir(mode=0o700)
        try:
            with running_slurm(folder / "slurm") as slurm:
                sweep = Sweep(program, slurm, folder)
                sweep.start("--out", "here").communicate(timeout=PATIENCE)
                packed_sweep(sweep)
                if not smoke:
                    disturbed_sweep(sweep)
                    expect(sweep.csv("out") == sweep.csv("here"),
                           "results.csv differs from that of a sweep on this machine")
                    tasks_without_results(sweep)
        except (TestFailure, OSError, subprocess.TimeoutExpired) as failure:
            print(f"sweep on Slurm: {failure}", file=sys.stderr)
            return 1
    print("sweep on Slurm: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
