#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""budget.py [--write] BUILD: holds counts that a noisy machine does not move against budget.csv.

Counted are instructions (cachegrind) of the program's start, of a submission and of a status call, and of a
simulation of a small trace under every policy that decides; KiB of the program; and MiB of headers that the
units of the release program read. More than 3 % over the table fails; a commit that means it changes the
table with --write and says why. BUILD is the folder of a release build."""
import argparse
import concurrent.futures
import csv
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TABLE = Path(__file__).with_name("budget.csv")
MOST = 1.03
JOBS = 400
SMALL = 200  # of policies that solve or match at each decision
FEW = 60  # of policies that simulate or search at each decision
LOSING = ("gavel-published",)  # jobs, as the published program does, and fails for it
SOLVING = ("chronus", "finish-time-fairness", "makespan", "muri-l", "muri-s", "sia", "sia-published", "synergy-opt")
SEARCHING = ("auto", "pollux", "pollux-published")
WORST_UNITS = 5
INSTRUCTIONS = "M instructions"
CALLS = ("submit", "status")  # of bench/calls
CALLS_COUNTED = 1000
# The same functions of the C library on every processor.
PLAIN = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM"


def write_trace(path, jobs):
    draw = random.Random(1)
    at = 0.0
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow("job_id submit_time gpus duration deadline user model batch_size iteration_time "
                      "stage_0 stage_1 stage_2".split())
        for number in range(jobs):
            at += draw.expovariate(1 / 250)
            duration = 60 + int(draw.lognormvariate(7.5, 1.2))
            stages = [round(draw.uniform(0.01, 0.1), 3) for _ in range(3)]
            rows.writerow([f"j{number}", int(at), draw.choice((1, 1, 1, 2, 4, 8)), duration,
                           int(at + duration * draw.uniform(1.5, 6)), f"u{number % 5}",
                           ("bert", "resnet50")[number % 2], 64, 0.1, *stages])


def write_profiles(path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["model", "batch_size", "gpus", "iterations_per_second"])
        for model, rate in (("bert", 3.0), ("resnet50", 8.0)):
            for power in range(4):
                rows.writerow([model, 64, 2**power, round(rate * 1.8**power, 4)])


def with_iterations(source, target):
    """Policies that set the numbers of GPUs want work in iterations."""
    with open(source, encoding="utf-8", newline="") as read, \
         open(target, "w", encoding="utf-8", newline="") as written:
        for row in (jobs := list(csv.DictReader(read))):
            row["iterations"] = int(float(row.pop("duration")) * 5)
            for column in ("iteration_time", "stage_0", "stage_1", "stage_2"):
                del row[column]
        rows = csv.DictWriter(written, list(jobs[0]))
        rows.writeheader()
        rows.writerows(jobs)


def instructions(command):
    """Millions of them. The environment is empty: its size moves the stack."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/out",
             *map(str, command)], capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "GLIBC_TUNABLES": PLAIN}, cwd=folder)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or found is None:
        sys.exit(f"budget: {' '.join(map(str, command))}: ended with {done.returncode}:\n{done.stderr}")
    return int(found[1].replace(",", "")) / 1e6


def header_mib(build):
    """MiB of headers that each unit of the program reads, by unit."""
    told = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    sizes = {}
    units = {}
    for block in told.split("\n\n"):
        lines = block.splitlines()
        if not lines or not re.match(r"src/\w+/CMakeFiles/trainyard(_\w+)?\.dir/", lines[0]):
            continue
        for path in map(str.strip, lines[1:]):
            if path not in sizes:
                file = Path(path) if path.startswith("/") else Path(build) / path
                sizes[path] = file.stat().st_size if file.exists() else 0
        unit = lines[0].split(":")[0].replace("CMakeFiles/", "").replace(".cxx.o", "").replace(".cc.o", "")
        units[unit] = sum(sizes[path.strip()] for path in lines[1:]) / 2**20
    return units


def jobs_of(policy):
    return FEW if policy in SEARCHING else SMALL if policy in SOLVING else JOBS


def count(build):
    program = Path(build).resolve() / "trainyard"
    rows = {("program", "KiB"): program.stat().st_size / 2**10}
    units = header_mib(build)
    if not units:
        sys.exit(f"budget: {build}: ninja knows no headers of the program; expected the folder of a finished build")
    rows["headers of all units", "MiB"] = sum(units.values())
    worst = sorted(units.values(), reverse=True)[:WORST_UNITS]
    rows[f"headers of the {WORST_UNITS} worst units", "MiB"] = sum(worst)
    names = [line.split()[0] for line in
             subprocess.run([program, "policies"], capture_output=True, text=True,
                            check=True).stdout.splitlines() if line[:1] not in ("", " ")]
    names = [name for name in names if name not in LOSING]
    with tempfile.TemporaryDirectory() as folder:
        write_profiles(f"{folder}/profiles.csv")
        for jobs in (JOBS, SMALL, FEW):
            write_trace(f"{folder}/{jobs}.csv", jobs)
            with_iterations(f"{folder}/{jobs}.csv", f"{folder}/{jobs}i.csv")
        commands = {("start", INSTRUCTIONS): [program, "--version"]}
        calls = Path(build).resolve() / "bench" / "calls"
        for kind in CALLS:
            for number in (0, CALLS_COUNTED):
                commands[f"{number} {kind}s", INSTRUCTIONS] = [calls, kind, number]
        for name in names:
            searches = name.startswith(("pollux", "sia"))  # at every interval
            elastic = name.startswith("elastic") or name == "optimus" or searches
            commands[f"simulate {jobs_of(name)} jobs under {name}", INSTRUCTIONS] = [
                program, "simulate", f"{folder}/{jobs_of(name)}{'i' if elastic else ''}.csv", "--cluster", "4x8",
                "--policy", name + ":interval=3600" * searches, *(["--profiles", f"{folder}/profiles.csv"] if elastic else [])]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            rows.update(zip(commands, pool.map(instructions, commands.values())))
    for kind in CALLS:
        none, counted = (rows.pop((f"{number} {kind}s", INSTRUCTIONS)) for number in (0, CALLS_COUNTED))
        rows[f"a {kind} call beside 1000 jobs", "K instructions"] = (counted - none) * 1000 / CALLS_COUNTED
    return rows


def read_table():
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {(row["what"], row["unit"]): float(row["count"]) for row in csv.DictReader(file)}


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("build", metavar="BUILD")
    options.add_argument("--write", action="store_true", help="write the table anew")
    options = options.parse_args()
    rows = count(options.build)
    if options.write:
        with open(TABLE, "w", encoding="utf-8", newline="") as file:
            written = csv.writer(file, lineterminator="\n")
            written.writerow(["what", "unit", "count"])
            written.writerows((*what, f"{value:.1f}") for what, value in rows.items())
        return 0
    table = read_table()
    over = 0
    for what in dict.fromkeys([*table, *rows]):
        if what not in rows or what not in table:
            print(f"budget: {what[0]}: {'not counted any more' if what in table else 'not in the table'}")
            over += 1
        elif rows[what] > MOST * table[what]:
            print(f"budget: {what[0]}: {rows[what]:.1f} {what[1]}, {rows[what] / table[what] - 1:+.1%} to the table")
            over += 1
    if over:
        print(f"budget: {over} of {len(rows)} counts are over {TABLE.name}; where it is meant: "
              "bench/budget.py --write build/release, and the commit says why")
        return 1
    print(f"budget: {len(rows)} counts are within 3 % of {TABLE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
