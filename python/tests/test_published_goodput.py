# SPDX-License-Identifier: Apache-2.0
"""The goodput model and its fit against those of Pollux's own program (docs/reference.md)."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from trainyard.train.goodput import BatchLimits, GoodputModel, GradientNoise, Split, StepTimes
from trainyard.train.step_times import MeasuredStep, error_of, fit

GOLDEN = Path(os.environ.get("TRAINYARD_REFERENCE", "/absent")) / "golden" / "pollux"
pytestmark = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="no published values: set TRAINYARD_REFERENCE (docs/reference.md)"
)



def rows_of(name: str) -> list[dict[str, Any]]:
    with (GOLDEN / name).open() as file:
        return list(csv.DictReader(file))


def numbers(row: dict[str, Any], names: str) -> list[float]:
    return [float(row[name]) for name in names.split()]


def test_batches_and_goodput_are_the_published_ones() -> None:
    points = rows_of("goodput_points.csv")
    assert len(points) == 60
    for row in points:
        times = StepTimes(*numbers(row, "alpha_c beta_c alpha_n beta_n alpha_r beta_r gamma"))
        limits = BatchLimits(*map(int, numbers(row, "init_batch max_batch min_local max_local")))
        model = GoodputModel(times, GradientNoise(*numbers(row, "grad_sqr grad_var")), limits)
        nodes, gpus = int(row["num_nodes"]), int(row["num_replicas"])
        value, split = model.best(nodes, gpus)
        assert split == Split(int(row["atomic_bsz"]), int(row["accum_steps"]))
        assert value == pytest.approx(float(row["goodput"]), rel=1e-9)
        assert model.throughput(nodes, gpus, split) == pytest.approx(
            float(row["throughput"]), rel=1e-9
        )


def test_fits_are_as_near_as_the_published_ones() -> None:
    pytest.importorskip("torch")
    profiles: dict[str, list[MeasuredStep]] = defaultdict(list)
    for row in rows_of("fit_profiles.csv"):
        nodes, gpus, part = map(int, numbers(row, "num_nodes num_replicas local_bsz"))
        step, sync = numbers(row, "step_time sync_time")
        profiles[row["profile"]].append(MeasuredStep(nodes, gpus, part, step, step - sync))
    results = rows_of("fit_results.csv")
    assert len(results) == 24
    for row in results:
        steps = profiles[row["profile"]]
        found = fit(steps)
        if all(step.nodes == 1 for step in steps):  # the objective is that before the prior
            found = StepTimes(**{**found.__dict__, "alpha_network": 1e-8, "beta_network": 1e-8})
        assert error_of(found, steps) <= float(row["objective"]) * 1.1 + 1e-4, row["profile"]
