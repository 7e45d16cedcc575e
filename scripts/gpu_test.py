#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_test.py [--live]: the client library and the workloads on a GPU of NVIDIA; with --live, controller
and agent with real CUDA jobs.

Needs Python and torch, and for --live the program; nothing has to be installed. Prints its progress and a
table for docs/gpu.md, and writes library.json or live.json; exit status 1 if something fails. Where there
is no GPU it says so and ends with 0. docs/gpu.md describes the tests.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_test import library, live  # noqa: E402
from gpu_test.report import Timed, hardware  # noqa: E402
from train_test.figures import write  # noqa: E402

SOURCE = Path(__file__).resolve().parents[1]
LIBRARY_LIMIT, LIVE_LIMIT = 180.0, 540.0  # seconds


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--live", action="store_true", help="controller and agent with real jobs")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tries the test itself")
    add("--pretend", action="store_true", help="the same as --device cpu; of --live, with a GPU that is "
        "none")
    add("--only", action="append", metavar="NAME", help="of "
        f"{', '.join(library.NAMES)}; with --live of {', '.join(live.NAMES)}")
    add("--limit", type=float, metavar="SECONDS", help="of the whole test "
        f"({LIBRARY_LIMIT:.0f}; with --live {LIVE_LIMIT:.0f})")
    add("--out", type=Path, default=SOURCE / "out/gpu-test", metavar="FOLDER")
    add("--trainyard", type=Path, metavar="PROGRAM", help="of --live; default: the package's, or "
        "build/release/trainyard")
    add("--keep", action="store_true", help="the folders of the clusters")
    options = parser.parse_args()
    if options.pretend:
        options.device = "cpu"
    known = live.NAMES if options.live else library.NAMES
    options.only = options.only or list(known)
    for name in options.only:
        if name not in known:
            parser.error(f"--only {name}: expected {', '.join(known)}")
    if options.limit is None:
        options.limit = LIVE_LIMIT if options.live else LIBRARY_LIMIT
    if options.live:
        options.trainyard = find_program(options.trainyard, parser)
    return options


def find_program(wish: Path | None, parser: argparse.ArgumentParser) -> Path:
    for program in [wish] if wish else [SOURCE / "bin/trainyard", SOURCE / "build/release/trainyard"]:
        if program.is_file():
            return program.resolve()
    parser.error("--live needs the program: take ./dev prove gpu --live, which builds it, the package of "
                 "./dev prove gpu --pack FILE, or name it by --trainyard")


def end_in_order(number: int, _frame: FrameType | None) -> None:
    """Clusters end before this program does."""
    sys.exit(128 + number)


def main() -> int:
    options = parse()
    where = hardware(options.device)
    if where is None:
        print("gpu-test: torch sees no GPU of NVIDIA here: nothing has been checked")
        return 0
    signal.signal(signal.SIGTERM, end_in_order)
    report = Timed("live" if options.live else "library")
    report.date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    report.program = where
    report.say(f"{where}; Python {sys.version.split()[0]}")
    folder = Path(tempfile.mkdtemp(prefix="gpu-test-"))
    try:
        if options.live:
            live.Live(options, folder, report).run()
        else:
            library.Library(options.device, folder, report, options.limit).run(options.only)
    finally:
        report.details["seconds"] = round(report.elapsed, 1)
        write([report], options.out)
        if options.keep:
            print(f"gpu-test: kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    report.add("the whole test", f"{report.elapsed:.0f} s", f"<= {options.limit:.0f} s",
               report.elapsed <= options.limit + 15)
    write([report], options.out)
    print(f"\n{report.date}, {where}\n\n| what | figure | bar | |\n|---|---|---|---|")
    for figure in report.figures:
        print(f"| {figure.what} | {figure.measured} | {figure.bar} | {figure.verdict} |")
    print(f"\ngpu-test: {options.out}/{report.name}.json has the figures")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
