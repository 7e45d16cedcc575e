# SPDX-License-Identifier: Apache-2.0
"""Order and seeds."""

from __future__ import annotations

from trainyard.train import order, sample_seed


def test_the_order_is_a_permutation_that_seed_and_epoch_change() -> None:
    orders = [tuple(order.permutation(100, seed, epoch)) for seed in (1, 2) for epoch in (0, 1)]
    assert all(sorted(one) == list(range(100)) for one in orders)
    assert len(set(orders)) == 4


def test_the_order_is_the_same_in_every_version() -> None:
    assert list(order.permutation(10, seed=1, epoch=0)) == [5, 3, 2, 1, 6, 0, 8, 4, 9, 7]
    assert sample_seed(1, 2, 3) == 8149998584550362645


def test_each_place_is_as_likely_as_any_other() -> None:
    counts = [[0] * 4 for _ in range(4)]
    for epoch in range(4000):
        for place, sample in enumerate(order.permutation(4, 7, epoch)):
            counts[sample][place] += 1
    assert all(850 < count < 1150 for row in counts for count in row)


def test_parts_are_equal_or_differ_by_one_and_cover_the_batch() -> None:
    for count in range(20):
        for ranks in range(1, 8):
            parts = [order.part(count, rank, ranks) for rank in range(ranks)]
            assert parts[0][0] == 0 and parts[-1][1] == count
            assert all(one[1] == other[0] for one, other in zip(parts, parts[1:]))
            sizes = [end - begin for begin, end in parts]
            assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)


def test_chunks_are_never_empty() -> None:
    assert [list(chunk) for chunk in order.chunks([1, 2, 3], 2)] == [[1, 2], [3]]
    assert [list(chunk) for chunk in order.chunks([1, 2], 5)] == [[1], [2]]
