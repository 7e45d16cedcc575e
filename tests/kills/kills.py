# SPDX-License-Identifier: Apache-2.0
"""Controller, agents and supervisors of a real cluster on loopback, and what the steps of its scripts consist of,
killed (-9) again and again while jobs are submitted, run and end: kills.py --trainyard PROGRAM [--kills N] [--seed N].

At the end check.py reads what is left in the folder, and its sentence is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]

from check import check  # noqa: E402
from train_test.cluster import free_port, processes_of  # noqa: E402

OF_STEPS = ("srun", "step-tasks", "task")  # processes of a script's steps
NODES = 3
GPUS = 2
LEASE = 8.0  # seconds; some agents stay away longer
GRACE = 3.0
PAUSE = 0.6  # between two kills, on average
PATIENCE = 900.0  # for the end of all jobs after the last kill


@dataclass
class Cluster:
    trainyard: str
    folder: Path
    policy: str
    address: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def arguments(self, name: str) -> list[str]:
        if name == "controller":
            return ["controller", "--cluster", f"{NODES}x{GPUS}", "--listen", self.address,
                    "--state", str(self.folder / "controller"), "--policy", self.policy,
                    "--heartbeat", "0.2", "--lease", str(LEASE), "--grace", str(GRACE),
                    "--snapshot-entries", "50"]
        return ["agent", "--controller", self.address, "--node", name, "--gpus", str(GPUS),
                "--state", str(self.folder / "nodes" / name), "--checkpoints",
                str(self.folder / "checkpoints")]

    def start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [self.trainyard, *self.arguments(name)], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)

    def kill(self, name: str) -> None:
        """Raises where it has ended by itself, which is no part of the plan."""
        process = self.running[name]
        if process.poll() is not None:
            raise RuntimeError(f"{name} has ended by itself with {process.returncode}: "
                               f"{self.folder}/{name}.log")
        process.kill()
        process.wait()

    def supervisors(self) -> list[tuple[int, int, int]]:
        """With their job and attempt. Each is the leader of a session of its own."""
        mark = str(self.folder / "nodes").encode() + b"/"
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                number = int(process.name)
                words = (process / "cmdline").read_bytes()
                attempt = re.search(mark + rb"[^/]*/attempts/(\d+)-(\d+)", words)
                if attempt and os.getsid(number) == number:
                    found.append((number, int(attempt[1]), int(attempt[2])))
        return sorted(found)

    def of_steps(self, kind: str) -> list[tuple[int, int, int]]:
        """Processes of that kind of a script's steps, with their job and attempt."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                words = (process / "cmdline").read_bytes()
                name = (process / "comm").read_text().strip()
                if kind == ("task" if str(HERE / "task.sh").encode() in words and name == "sh" else name):
                    of = dict(line.split(b"=", 1) for line in
                              (process / "environ").read_bytes().split(b"\0") if b"=" in line)
                    if of.get(b"TRAINYARD_ATTEMPT_FOLDER", b"").startswith(str(self.folder).encode()):
                        job, attempt = of[b"TRAINYARD_ATTEMPT_FOLDER"].rsplit(b"/")[-1].split(b"-")
                        found.append((int(process.name), int(job), int(attempt)))
        return sorted(found)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.trainyard, words[0], "--controller", self.address, *words[1:]],
                              capture_output=True, text=True, timeout=120)

    def end(self) -> list[int]:
        """Ends all; what is left then."""
        for process in self.running.values():
            with suppress(ProcessLookupError):
                process.terminate()
        for process in self.running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
        end = time.monotonic() + LEASE + GRACE + 30
        while list(processes_of(self.folder)) and time.monotonic() < end:
            time.sleep(0.2)
        left = list(processes_of(self.folder))
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return left


class Client(threading.Thread):
    """Submits job after job by the command, and writes down what it is told before it goes on."""

    def __init__(self, cluster: Cluster, name: str, seed: str) -> None:
        super().__init__()
        self.cluster = cluster
        self.name = name
        self.random = random.Random(seed)
        self.ended = threading.Event()
        self.error = ""

    def run(self) -> None:
        number = 0
        while not self.ended.is_set() and not self.error:
            number += 1
            self.submit(f"{self.name}-{number}")
            self.ended.wait(self.random.expovariate(1 / 0.8))

    def note(self, line: str) -> None:
        with (self.cluster.folder / "client.log").open("a") as log:  # one write, with O_APPEND
            log.write(line + "\n")
            log.flush()
            os.fsync(log.fileno())

    def submit(self, token: str) -> None:
        """Until it is acknowledged, as a user's script does."""
        if self.random.random() < 0.4:
            return self.send(token, 0, ["--cwd", str(self.cluster.folder), "--env", f"TASK={HERE}/task.sh",
                                        str(HERE / "script.sh")])
        gpus = self.random.choice([1, 1, 1, 2, 2, 3])
        seconds = self.random.uniform(0.1, 2)
        self.send(token, gpus, ["--gpus", str(gpus), "--duration", f"{seconds * 100:.0f}", "--cwd",
                                str(self.cluster.folder), "--env", f"LOCKS={self.cluster.folder}/locks", "--",
                                "sh", str(HERE / "worker.sh"), f"{seconds:.2f}"])

    def send(self, token: str, gpus: int, words: list[str]) -> None:
        words = ["submit", "--json", "--token", token, *words]
        self.note(f"ask {token} {gpus}")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            done = self.cluster.ask(*words)
            if done.returncode == 0:
                return self.note(f"ack {token} {json.loads(done.stdout)['job']}")
            time.sleep(0.05)
        self.error = f"{token} is not acknowledged: {done.stderr}"


class Killer:
    """What is killed is started again: mostly at once, at times when its lease is long over."""

    def __init__(self, cluster: Cluster, seed: str) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.due: dict[str, float] = {}  # when what is dead is to start
        self.counts: Counter[str] = Counter()
        self.bereft: Counter[int] = Counter()  # supervisors that a job has lost

    def start_due(self) -> None:
        for name, at in list(self.due.items()):
            if at <= time.monotonic():
                del self.due[name]
                self.cluster.start(name)

    def strike(self) -> None:
        name = self.random.choice(["controller", "controller", "agent", "agent", "supervisor", *OF_STEPS])
        if name == "supervisor" or name in OF_STEPS:
            # A job whose supervisors are gone three times in a row is taken for their murderer.
            victims = ([victim for victim in self.cluster.supervisors() if self.bereft[victim[1]] < 2]
                       if name == "supervisor" else self.cluster.of_steps(name))
            if not victims:
                return
            pid, job, attempt = self.random.choice(victims)
            self.bereft[job] += name == "supervisor"
            with (self.cluster.folder / "kills.log").open("a") as log:
                log.write(f"{name} {job} {attempt}\n")
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.kill(pid, signal.SIGKILL)
                self.counts[name] += 1
            return
        victim = f"n{self.random.randrange(NODES)}" if name == "agent" else name
        if victim in self.due:
            return
        self.cluster.kill(victim)
        self.counts[name] += 1
        away = self.random.random()
        pause = 0.0 if away < 0.8 else self.random.uniform(0.2, 2)
        if away > 0.99 and name == "agent":
            pause = self.random.uniform(LEASE, 2 * LEASE + GRACE + 5)
        self.due[victim] = time.monotonic() + pause

    def run(self, kills: int) -> None:
        told = 0
        while self.counts.total() < kills:
            self.start_due()
            self.strike()
            self.start_due()
            if self.counts.total() >= told + 100:
                told = self.counts.total()
                print(f"kills.py: {told} kills", file=sys.stderr, flush=True)
            # Now and then two at once.
            time.sleep(0 if self.random.random() < 0.1 else self.random.expovariate(1 / PAUSE))
        while self.due:
            self.start_due()
            time.sleep(0.05)


def await_end(cluster: Cluster) -> bool:
    """The operator gives back nodes that the controller has drained for what looked like faults."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for node in range(NODES):
            cluster.ask("undrain", f"n{node}")
        done = cluster.ask("status", "--json")
        if done.returncode == 0 and not json.loads(done.stdout).get("jobs"):
            return True
        time.sleep(1)
    print(f"kills.py: after {PATIENCE:.0f} s not all jobs have ended:\n"
          f"{cluster.ask('status').stdout}", file=sys.stderr)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="kills.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("--trainyard", required=True, help="the program")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--policy", default="srtf")
    parser.add_argument("--out", type=Path, help="an empty folder; kept")
    options = parser.parse_args()
    folder = options.out or Path(tempfile.mkdtemp(prefix="trainyard-kills-"))
    folder = folder.resolve()
    for name in ("locks", "steps"):
        (folder / name).mkdir(parents=True)
    cluster = Cluster(options.trainyard, folder, options.policy)
    clients = [Client(cluster, f"c{i}", f"{options.seed}-{i}") for i in range(2)]
    killer = Killer(cluster, options.seed)
    began = time.monotonic()
    good = False
    try:
        for name in ("controller", *(f"n{i}" for i in range(NODES))):
            cluster.start(name)
        for client in clients:
            client.start()
        killer.run(options.kills)
        for client in clients:
            client.ended.set()
        for client in clients:
            client.join()
        good = await_end(cluster)
        (folder / "states.json").write_text(cluster.ask("status", "--all", "--json").stdout)
    finally:
        for client in clients:
            client.ended.set()
            client.error = client.error or "the run is over"
        left = cluster.end()
    verdict = check(folder)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(killer.counts.items()))
    print(f"{killer.counts.total()} kills ({counts}) in {time.monotonic() - began:.0f} s, "
          f"seed {options.seed}\n{verdict}")
    if left:
        print(f"kills.py: processes were left: {left}", file=sys.stderr)
    good = good and verdict.good and not left
    if good and not options.out:
        shutil.rmtree(folder)
    elif not good:
        print(f"kills.py: see {folder}", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
