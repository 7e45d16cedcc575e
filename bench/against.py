#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""against.py PROGRAM...: CPU seconds of several builds of the program, in one run, as a table.

Of each policy that all of them know, at 10,000 jobs on 1,000 GPUs; of some orderings at 1,000,000 jobs on
8,000 GPUs; and of the start. Whole processes, output files included; the programs take turns, and a
figure is the median. A last column divides the last program by the fastest of the others."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

START_RUNS = 40  # of a few milliseconds each
SMALL = {"jobs": 10_000, "gpus": 1000, "load": "1.2"}
LARGE = {"jobs": 1_000_000, "gpus": 8000, "load": "0.9"}
LARGE_POLICIES = ("fifo", "las", "srtf", "tiresias")


def run(command: list[str]) -> float:
    """CPU seconds of the process and what it has waited for."""
    child = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"against: {' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def in_turn(commands: list[list[str]], runs: int) -> list[float]:
    times = [[run(command) for command in commands] for _ in range(runs)]
    return [median(column) for column in zip(*times)]


def instructions(command: list[str], folder: Path) -> int:
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no",
                           f"--cachegrind-out-file={folder}/cachegrind", *command],
                          capture_output=True, text=True, check=True)
    return int(re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)[1].replace(",", ""))


def policies_of(program: str) -> list[str]:
    """Their names begin a line of the list; what else does so has no option --policy to run it."""
    text = subprocess.run([program, "policies"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^([a-z][a-z0-9-]*)(?=\s|$)", text, re.MULTILINE)


def generate(program: str, folder: Path, jobs: int, gpus: int, load: str) -> Path:
    path = folder / f"{jobs}.csv"
    run([program, "trace", "generate", "--jobs", str(jobs), "--seed", "1", "--cluster-gpus", str(gpus),
         "--load", load, "--largest-job", "64", "--longest-hours", "4", "--out", str(path)])
    return path


def simulate(program: str, trace: Path, gpus: int, policy: str, folder: Path) -> list[str]:
    return [program, "simulate", str(trace), "--cluster", f"{gpus // 8}x8", "--policy", policy, "--out",
            str(folder / "out")]


def runs_under(program: str, trace: Path, policy: str, folder: Path) -> bool:
    """Some want a file of profiles, or are names of another kind."""
    return subprocess.run(simulate(program, trace, 8, policy, folder), capture_output=True,
                          check=False).returncode == 0


class Table:
    def __init__(self, programs: list[str]) -> None:
        self.programs = programs
        versions = [subprocess.run([program, "--version"], capture_output=True, text=True,
                                   check=True).stdout.split()[-1] for program in programs]
        for program, version in zip(programs, versions):
            print(f"{version}: {program}")
        self.print_row("", versions, "last / best before")
        self.print_row("---", ["---:"] * len(programs), "---:")

    @staticmethod
    def print_row(name: str, cells: list[str], last: str) -> None:
        print(f"| {name} | {' | '.join(cells)} | {last} |", flush=True)

    def row(self, name: str, figures: list[float], form: str) -> None:
        ratio = f"{figures[-1] / min(figures[:-1]):.2f}" if len(figures) > 1 else ""
        self.print_row(name, [form.format(figure) for figure in figures], ratio)


def compare(programs: list[str], table: Table, policy: str, trace: Path, size: dict, folder: Path,
            runs: int) -> None:
    commands = [simulate(program, trace, size["gpus"], policy, folder) for program in programs]
    table.row(f"{policy}, {size['jobs']:,} jobs: CPU s", in_turn(commands, runs), "{:.2f}")


def compare_starts(programs: list[str], table: Table, small: Path, folder: Path) -> None:
    start = [[program, "--version"] for program in programs]
    one = generate(programs[0], folder, 1, 8, "1.0")
    single = [simulate(program, one, 8, "fifo", folder) for program in programs]
    some = [simulate(program, small, SMALL["gpus"], "srtf", folder) for program in programs]
    for what, commands in (("--version", start), ("simulate, 1 job", single)):
        table.row(f"{what}: CPU ms", [1000 * each for each in in_turn(commands, START_RUNS)], "{:.1f}")
    if shutil.which("valgrind"):
        for what, commands in (("--version", start), ("simulate, 1 job", single),
                               ("srtf, 10,000 jobs", some)):
            table.row(f"{what}: million instructions",
                      [instructions(command, folder) / 1e6 for command in commands], "{:,.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--policies", help="only these, separated by ','")
    parser.add_argument("--parts", default="start,small,large", help="default: start,small,large")
    options = parser.parse_intermixed_args()
    programs = [str(Path(program).resolve()) for program in options.programs]
    with tempfile.TemporaryDirectory(prefix="trainyard-against-", dir="/dev/shm") as name:
        folder = Path(name)
        table = Table(programs)
        small = generate(programs[0], folder, **SMALL)
        if "start" in options.parts:
            compare_starts(programs, table, small, folder)
        known = [policies_of(program) for program in programs]
        wanted = options.policies.split(",") if options.policies else known[0]
        wanted = [policy for policy in wanted if all(policy in names for names in known)]
        few = generate(programs[0], folder, 8, 8, "1.0")
        if "small" in options.parts:
            for policy in wanted:
                if all(runs_under(program, few, policy, folder) for program in programs):
                    compare(programs, table, policy, small, SMALL, folder, options.runs)
        if "large" in options.parts:
            large = generate(programs[0], folder, **LARGE)
            for policy in LARGE_POLICIES:
                if policy in wanted:
                    compare(programs, table, policy, large, LARGE, folder, options.runs)


if __name__ == "__main__":
    main()
