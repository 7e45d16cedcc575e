# SPDX-License-Identifier: Apache-2.0
"""sensitivity: a few points against the full grid of loader workers."""

from dataclasses import dataclass

from train_test.context import Context
from train_test.figures import Report
from train_test.profiles import profile, workload

MOST = 12  # loader workers
BATCH = 16
TOLERANCE = 0.10
MEASURE = {"batch": BATCH, "iterations": 12, "warmup": 4, "runs": 2, "noise": 15}


@dataclass(frozen=True)
class Kind:
    """Seconds: decoding of a sample, by waiting, and computing of an iteration."""

    name: str
    load: float
    forward: float


KINDS = (Kind("decodes", 0.060, 0.08), Kind("balanced", 0.030, 0.12), Kind("computes", 0.004, 0.2))


def run(context: Context) -> Report:
    report = Report("sensitivity")
    for kind in KINDS:
        compare(context, report, kind)
    return report


def compare(context: Context, report: Report, kind: Kind) -> None:
    command = workload("--batch", "{batch}", "--workers", "{workers}", "--max-iterations",
                       "{iterations}", "--samples", "100000", "--load-seconds", str(kind.load),
                       "--forward-seconds", str(kind.forward))
    few = profile(context, "sensitivity", context.folder / kind.name, kind.name,
                  {**MEASURE, "cpu": MOST}, command)
    grid = profile(context, "loader", context.folder / f"{kind.name}-grid", kind.name,
                   {**MEASURE, "workers": ",".join(map(str, range(1, MOST + 1))), "params": 1e6,
                    "flops": 1e9}, command)
    full = {run["workers"]: run["iteration_s"] for run in grid["runs"]}
    predicted = {point["cpus"]: point["iteration_s"] for point in few["points"]}
    measured = [point["cpus"] for point in few["points"] if point["measured"]]
    worst = max(full, key=lambda workers: abs(predicted[workers] / full[workers] - 1))
    apart = abs(predicted[worst] / full[worst] - 1)
    report.at_most(f"{kind.name}: furthest from the full grid ({worst} workers)", apart, TOLERANCE)
    report.add(f"{kind.name}: points measured", f"{len(measured)} of {MOST}; {few['runs_saved']:g} "
               f"runs, {few['minutes_saved']:.1f} minutes saved", f"< {MOST}",
               len(measured) < MOST)
    report.details[kind.name] = {"predicted": predicted, "grid": full, "measured": measured}
