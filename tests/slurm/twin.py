# SPDX-License-Identifier: Apache-2.0
"""twin.py PROGRAM [--scripts N] [--grammar N] [--seed S] [--verbose]: the same scripts for Slurm and Trainyard.

A real Slurm and `trainyard up` with the same nodes (n0, n1: 4 x a100, v0: 4 x v100, w0: 2 x a40) on loopback are given
each script by `sbatch`. Compared: refused or not; of a held job name, nodes, CPUs, memory, limit, array, partition, account
and so on, as `squeue` of each shows them; after its run the exit code, the state, the output files and their text. What
differs and is not in wanted.csv fails the test. Ends with a table of all that differs.
"""

import argparse
import contextlib
import csv
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from corpus import Script, grammar, idioms
from expectations import TestFailure, wait_until
from real_slurm import PATIENCE, Cluster, Node, free_ports, running_slurm

NODES = [Node("n0", 16, 200000, 4, "a100"), Node("n1", 16, 200000, 4, "a100"), Node("v0", 16, 200000, 4, "v100"),
         Node("w0", 16, 200000, 2, "a40")]
CLUSTER = Cluster(nodes=NODES, more="SelectTypeParameters=CR_Core_Memory\nKillWait=5\n",
                  partitions=["gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
                              "short Nodes=n[0-1] MaxTime=2-0 State=UP"])
NODES_HERE = "".join(
    f'[[nodes]]\nhost = "{node.name}"\ngpus = {node.gpus}\ngpu_type = "{node.gpu_type}"\ncpus = {node.cpus}\n'
    f'memory_gb = {node.memory / 1024}\nlabels = ["{node.gpu_type}"]\n' for node in NODES)
CLUSTER_HERE = NODES_HERE + """
[[partitions]]
name = "gpu"
default = true
[[partitions]]
name = "short"
nodes = ["n[0-1]"]
max_time = "2-0:00:00"
"""
SKIPPED = 77
TOOLS = ["sacct", "sbatch", "scancel", "scontrol", "sinfo", "squeue"]
# Of a held job.
FACTS = {"name": "%j", "nodes": "%D", "cpus": "%C", "memory": "%m", "limit": "%l", "tasks of array": "%K", "partition": "%P",
         "account": "%a", "comment": "%k", "features": "%f", "nodelist": "%n", "exclude": "%x", "folder": "%Z", "nice": "%y",
         "licences": "%W", "state": "%T"}


@dataclass
class Side:
    """One of the two clusters."""

    name: str
    environment: dict[str, str]
    folder: Path

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self.environment, cwd=cwd or self.folder, capture_output=True, text=True,
                              timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL)

    def says(self, *command: str) -> str:
        return self.run(*command).stdout


@dataclass
class Seen:
    """What one side has made of a script."""

    status: int = 0
    said: str = ""
    job: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    ended: str = ""
    files: dict[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def running_trainyard(program: str, folder: Path) -> Iterator[Side]:
    port = free_ports(1)[0]
    (folder / "cluster.toml").write_text(CLUSTER_HERE)
    (folder / "bin").mkdir()
    for tool in TOOLS:
        (folder / "bin" / tool).symlink_to(program)
    environment = os.environ | {"TRAINYARD_CONTROLLER": f"127.0.0.1:{port}", "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    log = (folder / "up.log").open("wb")
    up = subprocess.Popen([program, "up", "--cluster", "cluster.toml", "--state", "state", "--listen", f"127.0.0.1:{port}",
                           "--grace", "5"], cwd=folder, stdout=log, stderr=log)
    side = Side("trainyard", environment, folder)
    try:
        wait_until("the nodes are not idle",
                   lambda: set(side.says("sinfo", "-hN", "-o", "%t").split()) == {"idle"}, PATIENCE)
        yield side
    except TestFailure:
        print((folder / "up.log").read_text(errors="replace")[-3000:], file=sys.stderr)
        raise
    finally:
        up.terminate()
        up.wait(60)


def submit(side: Side, script: Script, folder: Path, *options: str) -> Seen:
    folder.mkdir(parents=True)
    (folder / "sub").mkdir()
    path = folder / "script.sh"
    path.write_text(script.text, newline="")
    answer = side.run("sbatch", "--parsable", *options, *script.options, path.name, *script.arguments, cwd=folder)
    job = answer.stdout.strip().split(";")[0]
    return Seen(status=answer.returncode, said=answer.stderr.strip(), job=job if answer.returncode == 0 else "")


def take_facts(side: Side, seen: Seen, folder: Path) -> None:
    text = side.says("squeue", "-h", "-j", seen.job, "-o", "\x1f".join(FACTS.values())).splitlines()
    values = text[0].split("\x1f") if text else []
    seen.facts = {name: value.replace(str(folder), "FOLDER").strip() for name, value in zip(FACTS, values, strict=False)}


def plain(text: str, seen: Seen, folder: Path) -> str:
    """Without what differs by nature: the numbers of jobs, names of folders, the tools' own words."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"^srun: (Job \d+ step creation temporarily disabled|Step created for).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"\b{seen.job}\b", "JOB", text) if seen.job else text
    return re.sub(r"(JOB_ID|ARRAY_JOB_ID)=\d+", r"\1=JOB", text)


def take_end(side: Side, seen: Seen, folder: Path) -> None:
    """The states of the job, or of all tasks of its array, and its files."""
    states = side.says("scontrol", "-o", "show", "job", seen.job)
    found = re.findall(r"JobState=(\S+).*? ExitCode=(\S+)", states)
    seen.ended = " ".join(f"{state}:{code}" for state, code in sorted(set(found)))
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "script.sh":
            name = plain(str(path.relative_to(folder)).replace(seen.job, "JOB"), seen, folder)
            name = re.sub(r"\d{3,}", "N", name)
            seen.files[name] = plain(path.read_text(errors="replace"), seen, folder)


def has_ended(side: Side, job: str) -> bool:
    return not side.says("squeue", "-h", "-j", job, "-o", "%i").strip()


def differences(ours: Seen, theirs: Seen) -> Iterator[tuple[str, str, str]]:
    """What is compared, as Slurm has it, as Trainyard has it."""
    if (ours.status == 0) != (theirs.status == 0):
        yield "taken", theirs.said or "taken", ours.said or "taken"
        return
    for name, value in theirs.facts.items():
        if ours.facts.get(name) != value:
            yield name, value, ours.facts.get(name, "nothing")
    if theirs.ended != ours.ended:
        yield "end", theirs.ended, ours.ended
    if theirs.files and sorted(theirs.files) != sorted(ours.files):
        yield "files", " ".join(sorted(theirs.files)), " ".join(sorted(ours.files))
    for name in sorted(set(theirs.files) & set(ours.files)):
        there, here = theirs.files[name].splitlines(), ours.files[name].splitlines()
        for a, b in zip(there, here, strict=False):
            if a != b:
                yield "text " + a.split("=")[0], a, b
        if len(there) != len(here):
            yield "text", f"{len(there)} lines", f"{len(here)} lines: {here[len(there):len(there) + 2]}"


class Wanted:
    """The differences that stay: `what`, `script` (patterns of all of it) and the reason."""

    def __init__(self, path: Path) -> None:
        with path.open(newline="") as file:
            self.rows = [(re.compile(row["what"], re.DOTALL), re.compile(row["script"]), row["why"]) for row in csv.DictReader(file)]
        self.used: Counter[str] = Counter()

    def why(self, what: str, script: Script, theirs: str, ours: str) -> str | None:
        for what_pattern, script_pattern, why in self.rows:
            if what_pattern.fullmatch(f"{what}: {theirs} | {ours}") and script_pattern.search(script.name + "\n" + script.text):
                self.used[why] += 1
                return why
        return None


def compare(sides: tuple[Side, Side], scripts: list[Script], wanted: Wanted, verbose: bool) -> dict[str, list[str]]:
    """Differences that nobody wants, with their scripts."""
    slurm, here = sides
    unwanted: dict[str, list[str]] = defaultdict(list)
    bar_at = time.monotonic()
    for number, script in enumerate(scripts):
        if time.monotonic() - bar_at > 10:
            bar_at = time.monotonic()
            print(f"{number} of {len(scripts)} scripts", file=sys.stderr)
        seen: list[Seen] = []
        for side in sides:
            folder = side.folder / "held" / script.name
            one = submit(side, script, folder, "--hold")
            if one.job:
                take_facts(side, one, folder)
                side.run("scancel", one.job)
            seen.append(one)
        if script.runs and all(one.job for one in seen):
            for side, one in zip(sides, seen, strict=True):
                folder = side.folder / "run" / script.name
                run = submit(side, script, folder)
                if run.job:
                    wait_until(f"{script.name} has not ended on {side.name}",
                               lambda side=side, run=run: has_ended(side, run.job), PATIENCE)
                    time.sleep(0.2)
                    take_end(side, run, folder)
                    one.ended, one.files = run.ended, run.files
        for what, theirs, ours in differences(seen[1], seen[0]):
            if wanted.why(what, script, theirs, ours) is None:
                unwanted[f"{what}: {theirs} | {ours}"].append(script.name)
                if verbose:
                    print(f"{script.name}: {what}: Slurm has {theirs!r}, Trainyard has {ours!r}")
    return unwanted


def may_make_devices() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.mknod(f"{folder}/gpu", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except OSError:
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--scripts", type=int, default=10_000, help="of the idioms, so many (default: all)")
    parser.add_argument("--grammar", type=int, default=2000, help="random requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="scripts whose name contains this pattern")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if not may_make_devices():
        print("not checked: this kernel lets this user make no devices, which stand for the GPUs of Slurm's nodes")
        return SKIPPED
    scripts = [*islice(idioms(), options.scripts), *grammar(options.seed, options.grammar)]
    scripts = [script for script in scripts if re.search(options.only, script.name)]
    wanted = Wanted(Path(__file__).parent / "wanted.csv")
    with tempfile.TemporaryDirectory(prefix="trainyard-twin-") as name:
        folder = Path(name)
        for each in ("slurm", "theirs", "ours"):
            (folder / each).mkdir(mode=0o700)
        with running_slurm(folder / "slurm", CLUSTER) as slurm, running_trainyard(
                str(Path(options.program).resolve()), folder / "ours") as ours:
            theirs = Side("Slurm", slurm.environment, folder / "theirs")
            unwanted = compare((theirs, ours), scripts, wanted, options.verbose)
    for why, count in sorted(wanted.used.items()):
        print(f"{count:6} wanted: {why}")
    for what, names in sorted(unwanted.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):6} {what[:300]!r}\n           {', '.join(names[:4])}")
    total = sum(len(names) for names in unwanted.values())
    print(f"{len(scripts)} scripts: {total} differences that are not wanted")
    return 1 if unwanted else 0


if __name__ == "__main__":
    sys.exit(main())
