# SPDX-License-Identifier: Apache-2.0
"""Trainings of several ranks, over gloo on the loopback: preempted, resized, and done wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from warm_ranks import run_ranks

pytest.importorskip("torch")

TRAINER = Path(__file__).with_name("ddp_trainer.py")
SAMPLES = 37


def run(world: int, folder: Path, *words: str) -> list[dict[str, Any]]:
    """An attempt; what its ranks have printed."""
    outputs = run_ranks(TRAINER, world, folder.with_suffix(".said"), str(folder), *words)
    return [json.loads(output) for output in outputs]


def agreed(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Rank 0's result, after a look whether the others have come to the same."""
    for result in results:
        for name in ("begun", "iterations", "done", "digest", "rate"):
            assert result[name] == results[0][name]
    return results[0]


def seen_in(*attempts: list[dict[str, Any]]) -> Counter[tuple[int, int]]:
    return Counter(
        (epoch, sample) for results in attempts for result in results
        for epoch, sample in result["seen"]
    )


def each_once(epochs: int, samples: int = SAMPLES) -> Counter[tuple[int, int]]:
    return Counter((epoch, sample) for epoch in range(epochs) for sample in range(samples))


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_that_are_preempted_come_to_the_same_bits(workers: int, tmp_path: Path) -> None:
    options = ("--dropout=0.2", f"--workers={workers}")
    undisturbed = agreed(run(2, tmp_path / "undisturbed", *options))
    # Notice at one rank only: all leave after the same step.
    first = run(2, tmp_path / "disturbed", *options, "--notice=3", "--notice-rank=1")
    assert (agreed(first)["iterations"], agreed(first)["done"]) == (3, False)
    second = run(2, tmp_path / "disturbed", *options, "--notice=9", "--notice-rank=0")
    assert (agreed(second)["begun"], agreed(second)["iterations"]) == (3, 9)
    third = run(2, tmp_path / "disturbed", *options)
    assert agreed(third)["done"]
    assert agreed(third)["digest"] == undisturbed["digest"]
    assert seen_in(first, second, third) == each_once(2)


def test_a_resize_within_an_epoch_keeps_the_batches_and_each_sample_once(tmp_path: Path) -> None:
    undisturbed = agreed(run(1, tmp_path / "undisturbed"))
    first = run(2, tmp_path / "resized", "--notice=2")
    second = run(3, tmp_path / "resized", "--notice=9", "--notice-rank=2", "--workers=1")
    third = run(1, tmp_path / "resized")
    assert [agreed(one)["begun"] for one in (first, second, third)] == [0, 2, 9]
    assert seen_in(first, second, third) == each_once(2)
    assert agreed(third)["iterations"] == undisturbed["iterations"] == 14
    assert agreed(third)["rate"] == pytest.approx(0.1)
    # The same batches with the same draws: only the order of additions differs. (Initial
    # parameters are rank 0's, whose seed does not depend on the world size.)
    assert agreed(third)["parameters"] == pytest.approx(undisturbed["parameters"], rel=1e-3, abs=1e-4)


def test_a_resize_may_scale_the_learning_rate_instead(tmp_path: Path) -> None:
    first = run(1, tmp_path, "--resize=scale-lr", "--notice=2")
    second = run(2, tmp_path, "--resize=scale-lr", "--notice=4")
    third = run(1, tmp_path, "--resize=scale-lr")
    assert [agreed(one)["rate"] for one in (first, second, third)] == pytest.approx([0.1, 0.2, 0.1])
    assert [agreed(one)["batch"] for one in (first, second, third)] == [6, 12, 6]
    assert seen_in(first, second, third) == each_once(2)


def test_more_ranks_than_samples_in_the_last_batch(tmp_path: Path) -> None:
    one = agreed(run(1, tmp_path / "one", "--samples=13"))
    three = run(3, tmp_path / "three", "--samples=13")  # the last batch has one sample
    assert seen_in(three) == each_once(2, 13)
    assert agreed(three)["parameters"] == pytest.approx(one["parameters"], rel=1e-3, abs=1e-4)


def test_ranks_may_agree_less_often(tmp_path: Path) -> None:
    results = run(2, tmp_path, "--agree-every=5", "--notice=6", "--notice-rank=1")
    assert agreed(results)["iterations"] == 10
    again = run(2, tmp_path)
    assert seen_in(results, again) == each_once(2)


def test_ranks_without_a_shared_disk_get_the_checkpoint_from_rank_0(tmp_path: Path) -> None:
    undisturbed = agreed(run(2, tmp_path / "undisturbed", "--dropout=0.2"))
    first = run(2, tmp_path / "own", "--dropout=0.2", "--own-folders", "--notice=5")
    assert not (tmp_path / "own" / "1").exists()
    second = run(2, tmp_path / "own", "--dropout=0.2", "--own-folders")
    assert agreed(second)["digest"] == undisturbed["digest"]
    assert seen_in(first, second) == each_once(2)


def test_a_damaged_checkpoint_is_passed_over_by_all_ranks(tmp_path: Path) -> None:
    run(2, tmp_path, "--notice=5")  # checkpoints of iterations 4 and 5
    state = next(tmp_path.glob("checkpoint-000000000005.*")) / "state.pt"
    state.write_bytes(state.read_bytes()[:1000])
    assert agreed(run(2, tmp_path))["begun"] == 4


# --------------------------------------------------------------------------- what is done wrong


def errors(results: list[dict[str, Any]]) -> list[str]:
    return [result["error"] for result in results]


def test_ranks_with_different_datasets_are_told_on_all_of_them(tmp_path: Path) -> None:
    found = errors(run(2, tmp_path, "--samples-of-rank-1=36"))
    assert found[0] == found[1]
    assert "ranks' loaders differ: samples is 37 on rank 0 and 36 on rank 1" in found[0]


def test_a_batch_smaller_than_the_world_is_told_on_all_ranks(tmp_path: Path) -> None:
    found = errors(run(3, tmp_path, "--batch=2"))
    assert set(found) == {
        "WorldSizeError: a global batch of 2 samples cannot be dealt out to 3 workers: raise "
        "batch_size, or resize the job to fewer GPUs"
    }


def test_a_checkpoint_of_another_dataset_is_told_on_all_ranks(tmp_path: Path) -> None:
    run(1, tmp_path, "--notice=2")
    found = errors(run(2, tmp_path, "--samples=40"))
    assert found[0] == found[1]
    assert found[0].startswith("MismatchError: the loader has 40 samples in the dataset")


def test_checkpoints_that_are_all_damaged_are_told_on_all_ranks(tmp_path: Path) -> None:
    run(2, tmp_path, "--notice=2")
    for path in tmp_path.glob("checkpoint-*/state.pt"):
        path.write_bytes(b"")
    found = errors(run(2, tmp_path))
    assert found[0] == found[1]
    assert "Move them away to begin anew" in found[0]
