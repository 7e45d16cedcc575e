# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on loopback, in a folder of its own: munged, slurmctld, and a slurmd for each node."""

import contextlib
import getpass
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from expectations import TestFailure, wait_until

PATIENCE = 300.0  # seconds for any one thing to happen
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
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
"""


@dataclass(frozen=True)
class Node:
    name: str
    cpus: int = 2
    memory: int = 1000  # MB
    gpus: int = 0
    gpu_type: str = ""


@dataclass(frozen=True)
class Cluster:
    nodes: Sequence[Node]
    partitions: Sequence[str]  # lines behind "PartitionName="
    more: str = "SelectTypeParameters=CR_Core\n"


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Slurm:
    """Controller and nodes; commands find it through SLURM_CONF."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder = folder
        self.cluster = cluster
        self.processes: list[subprocess.Popen[bytes]] = []
        (folder / "state").mkdir()
        ports = free_ports(len(cluster.nodes) + 1)
        lines = [CONFIGURATION.format(port=ports[0], folder=folder, user=getpass.getuser()), cluster.more]
        gpus = ["AutoDetect=off"]
        for node, port in zip(cluster.nodes, ports[1:], strict=True):
            gres = f" Gres=gpu:{node.gpu_type}:{node.gpus} Feature={node.gpu_type}" if node.gpus else ""
            lines.append(f"NodeName={node.name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} "
                         f"CPUs={node.cpus} RealMemory={node.memory}{gres}")
            if node.gpus:
                files = ",".join(str(self._gpu(i)) for i in range(node.gpus))
                gpus.append(f"NodeName={node.name} Name=gpu Type={node.gpu_type} File={files}")
        if len(gpus) > 1:
            lines.insert(1, "GresTypes=gpu")
            (folder / "gres.conf").write_text("\n".join(gpus) + "\n")
        lines += [f"PartitionName={line}" for line in cluster.partitions]
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}

    def _gpu(self, number: int) -> Path:
        """A device that stands for a GPU: slurmd takes nothing else (needs root)."""
        path = self.folder / f"gpu{number}"
        if not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        return path

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
        for node in self.cluster.nodes:
            self.start("slurmd", "-D", "-N", node.name, "-f", str(path / "slurm.conf"))
        names = ",".join(node.name for node in self.cluster.nodes)
        wait_until("the nodes are not idle", lambda: set(self.says(
            "sinfo", "--noheader", "--Node", f"--nodes={names}", "--format=%t").split()) == {"idle"}, PATIENCE)

    def says(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE, check=False).stdout

    def queue(self) -> list[str]:
        return self.says("squeue", "--noheader", "--array", "--format=%F_%K").split()

    def set_nodes(self, state: str) -> None:
        for node in self.cluster.nodes:
            self.says("scontrol", "update", f"nodename={node.name}", f"state={state}", "reason=test")

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
def running_slurm(folder: Path, cluster: Cluster) -> Iterator[Slurm]:
    slurm = Slurm(folder, cluster)
    try:
        slurm.start_all()
        yield slurm
    except TestFailure:
        print(slurm.logs(), file=sys.stderr)
        raise
    finally:
        slurm.stop()
