# SPDX-License-Identifier: Apache-2.0
"""local_test.py PROGRAM SOURCE: sweeps on this machine, as a user runs them.

Whatever the number of cores, and however often a sweep was killed, results.csv has the same bytes;
a cell that fails takes no other with it.
"""

import contextlib
import csv
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from expectations import TestFailure, expect

PATIENCE = 300.0  # seconds for any one thing to happen
SEEDS = 40
EXPERIMENT = """
[[trace]]
name = "bundled"
path = "{source}/data/example_trace.csv"
[[trace]]
name = "made"
generate = {{style = "mix", jobs = 60, cluster-gpus = 16, seed = "{{seed}}"}}
[[trace]]
name = "elsewhere"
path = "no-such-file.csv"
obtain = "ask its owner"
[[cluster]]
name = "c"
spec = "16x8"
[[run]]
label = "las"
policy = "las"
[[run]]
label = "broken"
policy = "las:quantm=3"
[axes]
seed = {seeds}
[[exclude]]
run = "broken"
seed = {more_seeds}
[[exclude]]
trace = ["bundled", "elsewhere"]
seed = {more_seeds}
"""


class Sweeps:
    def __init__(self, program: str, source: str, folder: Path) -> None:
        self.program = program
        self.source = source
        self.folder = folder
        seeds = list(range(SEEDS))
        self.experiment = folder / "e.toml"
        self.experiment.write_text(
            EXPERIMENT.format(source=source, seeds=seeds, more_seeds=seeds[1:]))

    def command(self, out: str, *options: str) -> list[str]:
        return [self.program, "sweep", str(self.experiment), "--out", str(self.folder / out),
                *options]

    def run(self, out: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(out, *options), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def csv(self, out: str) -> str:
        return (self.folder / out / "results.csv").read_text()

    def stop_half_way(self, out: str, number: signal.Signals) -> subprocess.Popen[str]:
        """Starts a sweep and ends it when it has done some cells, but not all."""
        sweep = subprocess.Popen(self.command(out, "--parallel", "1", "--keep-runs"),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + PATIENCE
        while len(list((self.folder / out).glob("runs/made/*/*/*/summary.json"))) < SEEDS // 4:
            expect(time.monotonic() < end and sweep.poll() is None, "the sweep ended too early")
            time.sleep(0.005)
        sweep.send_signal(number)
        sweep.wait(PATIENCE)
        return sweep


def the_same_results_on_any_number_of_cores(sweeps: Sweeps) -> None:
    one = sweeps.run("one", "--parallel", "1")
    two = sweeps.run("two", "--parallel", "2", "--json")
    expect(one.returncode == 1 and two.returncode == 1, f"exit status {one.returncode}")
    expect(f"2 of {SEEDS + 5} cells failed:" in one.stderr, one.stderr)
    expect("unknown option 'quantm'" in one.stderr, one.stderr)
    expect(f"2 of {SEEDS + 5} cells not run:" in one.stderr, one.stderr)
    expect("elsewhere/c/las/0: missing trace" in one.stderr, one.stderr)
    expect("ask its owner" in one.stderr, one.stderr)
    expect(sweeps.csv("one") == sweeps.csv("two"), "results.csv differs between 1 and 2 cores")
    rows = list(csv.DictReader(sweeps.csv("one").splitlines()))
    cells = json.loads(two.stdout)
    expect(len(rows) == len(cells) == SEEDS + 5, f"{len(rows)} rows, {len(cells)} cells")
    good = [row for row in rows if row["status"] == "ok"]
    expect(len(good) == SEEDS + 1, f"{len(good)} cells are ok")
    expect(len({row["jct_mean"] for row in good}) == SEEDS + 1, "seeds change nothing")
    expect(cells[0]["axes"] == {"trace": "bundled", "cluster": "c", "run": "las", "seed": 0},
           str(cells[0]))
    expect(cells[0]["metrics"]["completed"] == 400, str(cells[0]))


def a_killed_sweep_goes_on(sweeps: Sweeps) -> None:
    sweeps.stop_half_way("killed", signal.SIGKILL)
    again = sweeps.run("killed", "--keep-runs")
    there = again.stderr.split(" of ")[0]
    expect(there.isdigit() and 0 < int(there) < SEEDS, again.stderr)
    expect(sweeps.csv("killed") == sweeps.csv("one"), "results.csv differs after kill -9")
    once_more = sweeps.run("killed", "--keep-runs")
    expect(once_more.stderr.startswith(f"{SEEDS + 1} of {SEEDS + 5} cells are in "),
           once_more.stderr)


def an_interrupted_sweep_says_so(sweeps: Sweeps) -> None:
    sweep = sweeps.stop_half_way("stopped", signal.SIGINT)
    said = sweep.stderr.read() if sweep.stderr else ""
    expect(sweep.returncode == 1 and "stopped: " in said and "goes on from there" in said,
           f"{sweep.returncode}: {said}")
    sweeps.run("stopped")
    expect(sweeps.csv("stopped") == sweeps.csv("one"), "results.csv differs after SIGINT")


def single_cells_and_mistakes(sweeps: Sweeps) -> None:
    cell = sweeps.run("none", "--cell", "made/c/las/7", "--json")
    expect(cell.returncode == 0 and len(json.loads(cell.stdout)) == 1, cell.stderr)
    expect(not (sweeps.folder / "none" / "results.csv").exists(), "a single cell is kept")
    cell = sweeps.run("none", "--cell", "made/c/lsa/7")
    expect(cell.returncode == 2 and "did you mean 'made/c/las/7'?" in cell.stderr, cell.stderr)
    cells = sweeps.run("none", "--list").stdout.splitlines()
    expect(len(cells) == SEEDS + 5 and cells[0] == "bundled/c/las/0", str(cells[:2]))


def the_example_runs(sweeps: Sweeps) -> None:
    """What docs/sweep.md shows."""
    out = sweeps.folder / "example"
    run = subprocess.run([sweeps.program, "sweep", "experiments/example.toml", "--out", str(out)],
                         cwd=sweeps.source, capture_output=True, text=True, timeout=PATIENCE,
                         check=False)
    expect(run.returncode == 0, run.stderr)
    with contextlib.closing(sqlite3.connect(out / "results.sqlite")) as results:
        rows = results.execute(
            "SELECT run, load, avg(jct_mean) FROM results GROUP BY 1, 2").fetchall()
        cells = results.execute("SELECT count(*), sum(status = 'ok') FROM results").fetchone()
    expect(cells == (28, 28), str(cells))
    expect(len(rows) == 12 and all(jct > 0 for _, _, jct in rows), str(rows))
    expect(all(isinstance(load, (int, float)) for _, load, _ in rows), str(rows))


def main() -> int:
    program, source = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="trainyard-sweep-") as folder:
        sweeps = Sweeps(program, source, Path(folder))
        for test in (the_same_results_on_any_number_of_cores, a_killed_sweep_goes_on,
                     an_interrupted_sweep_says_so, single_cells_and_mistakes,
                     the_example_runs):
            try:
                test(sweeps)
            except TestFailure as failure:
                print(f"{test.__name__}: {failure}", file=sys.stderr)
                return 1
            print(f"{test.__name__}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
