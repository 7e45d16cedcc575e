# SPDX-License-Identifier: Apache-2.0
"""The reader of trails (scripts/train_test/trail.py), on trails that are written by hand."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts"))

from train_test.trail import Trail  # noqa: E402


def head(attempt: int, time: float, done: int = 0, rank: int = 0, world: int = 1) -> dict[str, Any]:
    return {"attempt": attempt, "rank": rank, "world_size": world, "done": done, "pid": 7,
            "time": time}


def step(iteration: int, time: float) -> dict[str, Any]:
    return {"iteration": iteration, "epoch": 0, "samples": [iteration], "loss": 1.0, "time": time}


def write(folder: Path, rank: int, attempt: int, *lines: dict[str, Any]) -> None:
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with (folder / f"{rank}-{attempt}.jsonl").open("a") as file:
        file.write(text)


def test_attempts_that_follow_each_other_are_no_fault(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, head(1, 10), step(1, 11), step(2, 12))
    write(tmp_path, 0, 2, head(2, 12, done=2), step(3, 13))
    assert Trail(tmp_path).faults(3) == []


def test_two_attempts_that_write_at_a_time_are_a_fault(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, head(1, 10, world=2), step(1, 11))
    write(tmp_path, 1, 1, head(1, 10, rank=1, world=2), step(1, 11.5), step(2, 14.25))
    write(tmp_path, 0, 2, head(2, 12, done=1), step(2, 13))
    write(tmp_path, 0, 3, head(3, 14, done=2), step(3, 15))
    assert Trail(tmp_path).faults(3) == [
        "attempt 2 has begun 2.250 s before attempt 1 wrote for the last time",
        "attempt 3 has begun 0.250 s before attempt 1 wrote for the last time"]


def test_a_second_start_of_an_attempt_is_one_more_attempt(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, head(1, 10), step(1, 11), step(2, 12))
    write(tmp_path, 0, 1, head(1, 13, done=1), step(2, 14), step(3, 15))
    trail = Trail(tmp_path)
    assert [(each.number, each.start, each.done) for each in trail.attempts] == [
        (1, 1, 0), (1, 2, 1)]
    assert trail.faults(3) == []
    assert [each.time for each in trail.chain] == [11, 14, 15]
    write(tmp_path, 0, 1, head(1, 14.5, done=3))
    assert Trail(tmp_path).faults(3) == [
        "attempt 1, start 3 has begun 0.500 s before attempt 1, start 2 wrote for the last time"]
