# SPDX-License-Identifier: Apache-2.0
"""The goodput model and its fit: against brute force and made-up times."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.train.goodput import (
    BatchLimits,
    GoodputModel,
    GradientNoise,
    Split,
    StepTimes,
    first_split,
    split_for,
)
from trainyard.train.step_times import MeasuredStep, error_of, fit

TIMES = StepTimes(0.05, 0.002, 0.09, 0.006, 0.03, 0.004, 1.6)
LIMITS = BatchLimits(initial=32, most=80, least_part=4, most_part=24)
MODEL = GoodputModel(TIMES, GradientNoise(1.0, 6.0), LIMITS)


def test_an_iteration_is_between_its_longer_part_and_both_one_after_the_other() -> None:
    compute, network = TIMES.compute(16), TIMES.network(1, 4)
    assert compute == pytest.approx(0.082)
    assert network == pytest.approx(0.03 + 2 * 0.004)
    assert max(compute, network) < TIMES.iteration(1, 4, 16) < compute + network
    assert TIMES.network(2, 2) == pytest.approx(0.09)
    assert TIMES.iteration(1, 1, 16) == pytest.approx(compute)


def test_efficiency_is_one_at_the_initial_batch_and_a_half_at_the_noise_scale() -> None:
    model = GoodputModel(TIMES, GradientNoise(1.0, 1000.0), LIMITS)
    assert model.efficiency(32) == 1.0
    assert model.efficiency(32 * 1000) == pytest.approx(0.5, rel=1e-3)
    assert GradientNoise(0.0, 0.0).gain(4) == 1.0
    assert GradientNoise(0.0, 1.0).gain(4) == pytest.approx(4.0)


@pytest.mark.parametrize("nodes, gpus", [(1, 1), (1, 2), (2, 3), (2, 8)])
@pytest.mark.parametrize("variance", [0.1, 1.0, 4.0, 30.0])
def test_the_chosen_batch_is_the_best_of_all(nodes: int, gpus: int, variance: float) -> None:
    """The limits are so near to each other that the candidates leave no batch out."""
    model = GoodputModel(TIMES, GradientNoise(1.0, variance), LIMITS)
    splits = {
        split_for(target, gpus, LIMITS)
        for target in range(max(LIMITS.initial, LIMITS.least_part * gpus), LIMITS.most + 1)
    }
    allowed = [split for split in splits if 4 <= split.part <= 24]
    best = max(model.goodput(nodes, gpus, split) for split in allowed)
    value, split = model.best(nodes, gpus)
    assert split in splits
    assert value == model.goodput(nodes, gpus, split) == pytest.approx(best, rel=1e-12)


def test_the_chosen_batch_is_nearly_the_best_of_many() -> None:
    limits = BatchLimits(initial=64, most=4096, least_part=1, most_part=256)
    model = GoodputModel(TIMES, GradientNoise(1.0, 20.0), limits)
    for gpus in (1, 2, 4, 7):
        best = max(
            model.goodput(1, gpus, Split(part, accumulated))
            for part in range(1, 257)
            for accumulated in range(int(gpus == 1), 16)
            if 64 <= Split(part, accumulated).samples(gpus) <= 4096
        )
        assert model.best(1, gpus)[0] >= 0.99 * best


def test_a_noisier_gradient_takes_a_larger_batch() -> None:
    limits = BatchLimits(initial=32, most=4096, least_part=1, most_part=128)
    batches = [
        GoodputModel(TIMES, GradientNoise(1.0, variance), limits).best(1, 2)[1].samples(2)
        for variance in (0.1, 1.0, 10.0, 100.0)
    ]
    assert batches == sorted(batches)
    assert batches[-1] > 4 * batches[0]


def test_the_first_batch_is_the_initial_one_or_the_least_of_so_many_gpus() -> None:
    limits = BatchLimits(initial=32, most=256, least_part=8, most_part=24)
    assert first_split(1, limits) == Split(16, 1)
    assert first_split(2, limits) == Split(16)
    assert first_split(8, limits) == Split(8)
    assert first_split(64, limits).samples(64) == 256  # fewer than 8 each: not above the most


def test_what_is_reported_has_all_names_of_the_page() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "policies" / "pollux.md"
    metrics = MODEL.metrics(2)
    assert len(metrics) == 15
    assert metrics["goodput.tried_gpus"] == 2
    assert metrics["goodput.variance"] == 6
    if page.is_file():
        text = page.read_text()
        assert [name for name in metrics if f"`{name}`" not in text] == []


# ------------------------------------------------------------------------------------------ the fit


def measured(times: StepTimes, *rows: tuple[int, int, int]) -> list[MeasuredStep]:
    """What the model itself takes."""
    return [
        MeasuredStep(nodes, gpus, part, times.iteration(nodes, gpus, part), times.compute(part))
        for nodes, gpus, part in rows
    ]


def test_the_fit_predicts_what_it_has_not_seen() -> None:
    pytest.importorskip("torch")
    seen = [(1, 1, 8), (1, 1, 24), (1, 2, 8), (1, 2, 48), (1, 4, 16), (2, 4, 16), (2, 8, 32)]
    found = fit(measured(TIMES, *seen))
    assert error_of(found, measured(TIMES, *seen)) < 0.01
    assert found.alpha_compute == pytest.approx(TIMES.alpha_compute, rel=0.02)
    assert found.beta_compute == pytest.approx(TIMES.beta_compute, rel=0.02)
    for nodes, gpus, part in [(1, 1, 100), (1, 3, 30), (1, 4, 64), (2, 6, 20), (3, 8, 64)]:
        assert found.iteration(nodes, gpus, part) == pytest.approx(
            TIMES.iteration(nodes, gpus, part), rel=0.05
        )


def test_what_was_not_tried_costs_nothing() -> None:
    pytest.importorskip("torch")
    found = fit(measured(TIMES, (1, 1, 16)))
    assert found.alpha_compute == pytest.approx(TIMES.compute(16) / 2)
    assert found.compute(16) == pytest.approx(TIMES.compute(16), rel=0.03)
    assert max(found.alpha_node, found.beta_node, found.alpha_network) < 1e-7
    found = fit(measured(TIMES, (1, 1, 16), (1, 1, 32), (1, 2, 16)))
    assert found.alpha_network == pytest.approx(1.1 * found.alpha_node)
    assert found.beta_node < 1e-7
