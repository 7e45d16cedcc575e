# SPDX-License-Identifier: Apache-2.0
"""The lines of the job protocol (docs/job-protocol.md), without any input or output."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Mapping, Union

VERSION = 1
MAX_LINE = 4096  # bytes, the line feed included
MAX_NOTE = 200  # bytes of UTF-8
MAX_METRICS = 32  # names of one job
STAGES = ("load", "preprocess", "forward", "communication")

_METRIC_NAME = re.compile(r"[A-Za-z0-9_\-./]{1,64}")


@dataclass(frozen=True)
class Hello:
    """The version that the other side speaks."""

    version: int


@dataclass(frozen=True)
class Stop:
    """Notice: the job is killed after `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Tune:
    """The whole share of the node from now on, by name. What is not named is not limited."""

    values: Mapping[str, float]


@dataclass(frozen=True)
class Go:
    """The stage may begin."""

    stage: str


@dataclass(frozen=True)
class LeaseAnswer:
    """The answer to `lease?`: None, or the seconds that are left after the notice."""

    seconds_left: Union[float, None]


@dataclass(frozen=True)
class Refusal:
    """The other side did not understand a line."""

    reason: str


@dataclass(frozen=True)
class Garbage:
    """A line that is not of the protocol. `reason` says what was expected."""

    text: str
    reason: str


Message = Union[Hello, Stop, Tune, Go, LeaseAnswer, Refusal, Garbage]


def parse(line: bytes) -> Message:
    """The message in a line of the supervisor, without its line feed. Never raises."""
    try:
        text = line.decode("utf-8").strip()
    except UnicodeDecodeError:
        return Garbage(repr(line[:60]), "expected UTF-8")
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    try:
        if word == "hello":
            return Hello(_version(rest))
        if word == "stop":
            return Stop(_seconds(rest))
        if word == "tune":
            return Tune(_values(rest))
        if word == "go" and rest in STAGES:
            return Go(rest)
        if word == "lease" and rest == "ok":
            return LeaseAnswer(None)
        if word == "lease" and rest.startswith("stop "):
            return LeaseAnswer(_seconds(rest[len("stop "):]))
        if word == "error:":
            return Refusal(rest)
    except ValueError as error:
        return Garbage(shortened(text), str(error))
    return Garbage(shortened(text), "expected hello, stop, tune, go, lease or error:")


def iterations_line(word: str, iterations: float) -> str:
    """`progress N` or `checkpoint N`. Raises ValueError for a count that is none."""
    if not math.isfinite(iterations) or iterations < 0:
        raise ValueError(f"{word} takes a count of iterations from 0 on, not {iterations!r}")
    return f"{word} {iterations:d}" if isinstance(iterations, int) else f"{word} {iterations!r}"


def metric_line(name: str, value: float) -> str:
    """`metric NAME VALUE`. Raises ValueError for a wrong name or a value that is not finite."""
    if not _METRIC_NAME.fullmatch(name):
        raise ValueError(
            f"a metric's name has 1 to 64 letters, digits, '_', '-', '.' or '/', not {name!r}"
        )
    if not math.isfinite(value):
        raise ValueError(f"metric {name}: {value!r} is not a finite number")
    return f"metric {name} {float(value)!r}"


def note_line(text: str) -> str:
    """`note TEXT`: one line without control characters, cut to 200 bytes at a character's end."""
    printable = "".join(one if one.isprintable() else " " for one in text)
    flat = " ".join(printable.split()) or "-"
    return "note " + flat.encode("utf-8", "replace")[:MAX_NOTE].decode("utf-8", "ignore")


def shortened(text: str) -> str:
    """The text as it is shown in a complaint about it: 60 characters at most."""
    shown = text if len(text) <= 60 else text[:57] + "..."
    return repr(shown)


class LineBuffer:
    """Cuts received bytes into lines; a line that is too long is passed over to its end."""

    def __init__(self) -> None:
        self._rest = b""
        self._skips = False

    def feed(self, received: bytes) -> list[bytes]:
        """The lines that are complete now, without line feeds; a too long one as its beginning.

        The beginning has MAX_LINE bytes, by which the caller knows it.
        """
        lines: list[bytes] = []
        *whole, self._rest = (self._rest + received).split(b"\n")
        for line in whole:
            if self._skips:
                self._skips = False
            else:
                lines.append(line[:MAX_LINE])
        if len(self._rest) >= MAX_LINE:
            if not self._skips:
                lines.append(self._rest[:MAX_LINE])
            self._skips = True
            self._rest = b""
        return lines


def _finite(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0 or "_" in text:
        raise ValueError(f"expected {what}, a finite number from 0 on")
    return number


def _seconds(text: str) -> float:
    return _finite(text, "seconds")


def _version(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError("expected the version of the protocol, a whole number")
    return int(text)


def _values(text: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ValueError("expected NAME=VALUE")
        if name in ("cpus", "memory_mib", "storage_kbps", "loader_workers"):
            values[name] = _finite(value, name)
    return values
