# SPDX-License-Identifier: Apache-2.0
"""The lines of the protocol."""

from __future__ import annotations

import math
import random

import pytest

from trainyard.train import protocol
from trainyard.train.protocol import Garbage, Go, Hello, LeaseAnswer, Refusal, Stop, Tune


@pytest.mark.parametrize(
    "line, message",
    [
        (b"hello 1", Hello(1)),
        (b"stop 12.5", Stop(12.5)),
        (b"stop 0", Stop(0)),
        (b"stop 1e+02\r", Stop(100)),
        (b"tune", Tune({})),
        (b"tune cpus=3.5 loader_workers=4", Tune({"cpus": 3.5, "loader_workers": 4})),
        (b"tune cpus=1 of_a_later_version=abc", Tune({"cpus": 1})),
        (b"go load", Go("load")),
        (b"lease ok", LeaseAnswer(None)),
        (b"lease stop 3", LeaseAnswer(3)),
        (b"error: expected progress", Refusal("expected progress")),
    ],
)
def test_a_line_of_the_supervisor_is_understood(line: bytes, message: object) -> None:
    assert protocol.parse(line) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"hello -1",
        b"hello one",
        b"stop",
        b"stop -1",
        b"stop nan",
        b"stop inf",
        b"stop 1_0",
        b"stop soon",
        b"tune cpus",
        b"tune cpus=-1",
        b"tune =3",
        b"go",
        b"go nowhere",
        b"lease",
        b"lease maybe",
        b"\xff\xfe",
        b"GET / HTTP/1.1",
    ],
)
def test_a_line_that_is_none_is_garbage(line: bytes) -> None:
    assert isinstance(protocol.parse(line), Garbage)


def test_no_bytes_at_all_make_the_parser_fail() -> None:
    draw = random.Random(1)
    words = [b"stop ", b"tune ", b"hello ", b"go ", b"lease ", b"cpus=", b"\0", b"=", b"9" * 400]
    for _ in range(5000):
        noise = bytes(draw.randrange(256) for _ in range(draw.randrange(12)))
        protocol.parse(draw.choice(words) + noise)


def test_lines_are_cut_wherever_the_bytes_are() -> None:
    whole = b"stop 1\n\ngo load\nhello 1\n"
    for size in range(1, len(whole) + 1):
        buffer = protocol.LineBuffer()
        lines = [
            line
            for begin in range(0, len(whole), size)
            for line in buffer.feed(whole[begin : begin + size])
        ]
        assert lines == [b"stop 1", b"", b"go load", b"hello 1"]


@pytest.mark.parametrize("size", [1000, 4096, 5000, 20000])
def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_heard(size: int) -> None:
    whole = b"x" * 10000 + b"\nstop 1\n"
    buffer = protocol.LineBuffer()
    lines = []
    for begin in range(0, len(whole), size):
        lines += buffer.feed(whole[begin : begin + size])
    assert [len(line) for line in lines] == [protocol.MAX_LINE, 6]
    assert lines[1] == b"stop 1"


def test_numbers_are_written_so_that_they_are_read_again() -> None:
    assert protocol.iterations_line("progress", 1200) == "progress 1200"
    assert protocol.iterations_line("checkpoint", 0.5) == "checkpoint 0.5"
    assert protocol.metric_line("val/loss", -1e-05) == "metric val/loss -1e-05"


@pytest.mark.parametrize("count", [-1, math.nan, math.inf])
def test_a_count_of_iterations_is_finite_and_not_negative(count: float) -> None:
    with pytest.raises(ValueError, match="from 0 on"):
        protocol.iterations_line("progress", count)


@pytest.mark.parametrize("name", ["", "a b", "a\nfinished", "é", "x" * 65])
def test_a_wrong_name_of_a_metric_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="64 letters"):
        protocol.metric_line(name, 1.0)


def test_a_note_is_one_line_of_at_most_200_bytes() -> None:
    assert protocol.note_line("two\nlines\tof   it") == "note two lines of it"
    assert protocol.note_line("\x1b[31mred\0\x7f") == "note [31mred"
    assert protocol.note_line("\n") == "note -"
    line = protocol.note_line("ä" * 500)
    assert len(line.encode()) <= len("note ") + protocol.MAX_NOTE
    assert line.endswith("ä")
