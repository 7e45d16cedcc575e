#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""train_test.py [NAME...]: experiments with real training on a live cluster of this machine.

Prints a line for each figure, with its bar; exit status 1 if one is missed. Writes NAME.json and
results.md. docs/training.md describes the experiments.
"""

import argparse
import importlib
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent))

from train_test.cluster import SOURCE, ExperimentError
from train_test.context import Context
from train_test.figures import Report, write

EXPERIMENTS = ("resume", "loader", "interleave", "deadlines", "sensitivity", "overhead", "stages",
               "locality", "batches", "mixed")


def main() -> int:
    options = parse()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_in_order)
    folder = Path(tempfile.mkdtemp(prefix="train-test-", dir=options.scratch))
    reports = []
    try:
        for name in options.names or EXPERIMENTS:
            reports.append(run(name, options, folder / name))
            write(reports, options.out)
    finally:
        if options.keep:
            print(f"train-test: clusters are kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(report.passed for report in reports) else 1


def end_in_order(_number: int, _frame: FrameType | None) -> None:
    """Clusters end before this program does; further signals do not disturb that."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: print("train-test: ends the cluster", file=sys.stderr))
    sys.exit(130)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(EXPERIMENTS)}; "
                        "default: all")
    parser.add_argument("--trainyard", type=Path, default=SOURCE / "build/release/trainyard")
    parser.add_argument("--out", type=Path, default=SOURCE / "out/train-test")
    parser.add_argument("--seconds", type=float, help="of `mixed`, for each policy (default 60; "
                        "600 for the record)")
    parser.add_argument("--keep", action="store_true", help="the folders of the clusters")
    parser.add_argument("--scratch", type=Path, help="where these lie; default: TMPDIR")
    options = parser.parse_args()
    for name in options.names:
        if name not in EXPERIMENTS:
            parser.error(f"unknown experiment '{name}'; known: {', '.join(EXPERIMENTS)}")
    if not options.trainyard.is_file():
        parser.error(f"--trainyard {options.trainyard}: there is no such file; build it "
                     "(scripts/build.sh release) or name another")
    options.trainyard = options.trainyard.resolve()
    return options


def run(name: str, options: argparse.Namespace, folder: Path) -> Report:
    context = Context(options.trainyard, folder, options.seconds)
    try:
        report: Report = importlib.import_module(f"train_test.{name}").run(context)
    except ExperimentError as error:
        report = Report(name)
        report.add("the experiment itself", str(error), "done", False)
    report.date = date.today().isoformat()
    report.program = version_of(options.trainyard)
    report.add("processes left behind", f"{context.leftovers}", "0", context.leftovers == 0)
    return report


def version_of(program: Path) -> str:
    """What it says of itself, as `trainyard 0.2.0`; "" where it says nothing."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
