# SPDX-License-Identifier: Apache-2.0
"""The jobs of a live run, simulated."""

import csv
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train_test.cluster import ExperimentError
from train_test.context import Context
from train_test.figures import Report

TOLERANCE = 0.10  # of the mean JCT

COLUMNS = ("job_id", "submit_time", "gpus", "iterations", "model", "batch_size")


def simulate(context: Context, live: list[dict[str, Any]], cluster: str | Path,
             options: Sequence[str | Path],
             more: dict[str, Any] | None = None) -> dict[str, dict[str, str]]:
    """Rows of jobs.csv, by job. options: of `trainyard simulate`. more: further columns, each a
    value or a function of a job and of the time of the first submission."""
    first = min(job["submitted"] for job in live)
    trace = context.folder / "trace.csv"
    lines = [",".join([*COLUMNS, *(more or {})])]
    for job in live:
        request = job["request"]
        cells = [job["job"], f"{job['submitted'] - first:.6f}", 1, f"{request['iterations']:g}",
                 request["model"], request["batch_size"]]
        cells += [value(job, first) if callable(value) else value
                  for value in (more or {}).values()]
        lines.append(",".join(map(str, cells)))
    trace.write_text("\n".join(lines) + "\n")
    out = context.folder / "simulated"
    done = subprocess.run(
        [str(context.trainyard), "simulate", str(trace), "--cluster", str(cluster),
         *map(str, options), "--out", str(out)], capture_output=True, text=True)
    if done.returncode != 0:
        raise ExperimentError(f"trainyard simulate: {done.stderr.strip()}")
    with (out / "jobs.csv").open() as file:
        return {row["job_id"]: row for row in csv.DictReader(file)}


def compare_jct(report: Report, live: list[dict[str, Any]],
                simulated: dict[str, dict[str, str]], name: str = "") -> None:
    """The mean over the jobs that completed in both."""
    what = f"{name}: " if name else ""
    pairs = [(job["ended"] - job["submitted"], float(simulated[str(job["job"])]["jct"]))
             for job in live if job["state"] == "completed"
             and simulated[str(job["job"])]["outcome"] == "completed"]
    mean, expected = (statistics.mean(each) for each in zip(*pairs))
    report.add(f"{what}mean JCT live / simulated, jobs that completed in both",
               f"{mean:.1f} s / {expected:.1f} s = {mean / expected:.3f}", f"1 +- {TOLERANCE:g}",
               abs(mean / expected - 1) <= TOLERANCE)
    report.details[f"{what}jct_live_and_simulated"] = pairs
