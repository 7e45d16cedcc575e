# SPDX-License-Identifier: Apache-2.0
"""What trainers have written about themselves (`--trail`, workloads/common.py), put together."""

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


_CLOCK = 0.001  # seconds: times are rounded


@dataclass(frozen=True)
class Step:
    """One iteration of all processes of an attempt."""

    iteration: int
    epoch: int
    attempt: int
    samples: list[int]
    loss: float  # mean over the samples
    time: float  # when the last process had done it


@dataclass
class Attempt:
    number: int
    start: int  # of this number, from 1; Trainyard starts none twice
    world_size: int
    done: int  # iterations in the checkpoint from which it began
    began: float  # first and last time at which a process of it has written
    last: float
    pids: dict[int, int] = field(default_factory=dict)  # by rank
    parameters: str | None = None  # digest, if it reached the end
    lines: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # by iteration

    @property
    def name(self) -> str:
        return f"attempt {self.number}" + (f", start {self.start}" if self.start > 1 else "")

    def steps(self) -> list[Step]:
        """Those of which all processes have told."""
        return [together(self.number, iteration, lines)
                for iteration, lines in sorted(self.lines.items()) if len(lines) == self.world_size]


def together(attempt: int, iteration: int, lines: list[dict[str, Any]]) -> Step:
    samples = [sample for line in lines for sample in line["samples"]]
    loss = sum(line["loss"] * len(line["samples"]) for line in lines) / max(1, len(samples))
    return Step(iteration, lines[0]["epoch"], attempt, samples, loss,
                max(line["time"] for line in lines))


class Trail:
    """The attempts of a job, as far as they are written."""

    def __init__(self, folder: Path) -> None:
        self.attempts: list[Attempt] = []
        found: dict[tuple[int, int], Attempt] = {}  # by number and start
        for file in sorted(folder.glob("*-*.jsonl")):
            lines = [json.loads(line) for line in file.read_text().splitlines() if line[-1:] == "}"]
            if lines:
                self._add(found, lines)
        self.attempts = [found[key] for key in sorted(found)]

    @staticmethod
    def _add(found: dict[tuple[int, int], Attempt], lines: list[dict[str, Any]]) -> None:
        """A process's file: what it has done in each of its starts."""
        start = 0
        for line in lines:
            if "pid" in line:  # the first line of a start
                start += 1
                attempt = found.setdefault((line["attempt"], start), Attempt(
                    line["attempt"], start, line["world_size"], line["done"], line["time"],
                    line["time"]))
                attempt.pids[line["rank"]] = line["pid"]
            elif "finished" in line:
                attempt.parameters = line["parameters"]
            else:
                attempt.lines.setdefault(line["iteration"], []).append(line)
            if "time" in line:
                attempt.began = min(attempt.began, line["time"])
                attempt.last = max(attempt.last, line["time"])

    @property
    def last(self) -> int:
        """The latest iteration of which a process has told."""
        return max((max(each.lines, default=each.done) for each in self.attempts), default=0)

    @cached_property
    def chain(self) -> list[Step]:
        """The iterations that count: what an attempt did after its last checkpoint does not."""
        kept: dict[int, Step] = {}
        for attempt in self.attempts:
            kept = {number: step for number, step in kept.items() if number <= attempt.done}
            kept |= {step.iteration: step for step in attempt.steps()}
        return [kept[number] for number in sorted(kept)]

    def faults(self, iterations: int) -> list[str]:
        """Why the chain is not each of the iterations exactly once, by one attempt at a time; empty:
        it is."""
        faults = self.overlaps()
        kept: dict[int, int] = {}  # attempt by iteration
        for attempt in self.attempts:
            missing = [number for number in range(1, attempt.done + 1) if number not in kept]
            if missing:
                faults.append(f"{attempt.name} begins after iteration {attempt.done}, "
                              f"but nobody has done {missing[0]}")
            kept = {number: by for number, by in kept.items() if number <= attempt.done}
            for step in attempt.steps():
                if step.iteration in kept:
                    faults.append(f"{attempt.name} has done iteration {step.iteration}, "
                                  f"which is in its checkpoint")
                kept[step.iteration] = attempt.number
        wanted = set(range(1, iterations + 1))
        if wanted - kept.keys():
            faults.append(f"iteration {min(wanted - kept.keys())} is missing")
        if kept.keys() - wanted:
            faults.append(f"iteration {min(kept.keys() - wanted)} is one too many")
        return faults

    def overlaps(self) -> list[str]:
        """Attempts that have written while another one did: a job ran twice at once."""
        faults = []
        before: Attempt | None = None  # the one that has written last, of those so far
        for attempt in self.attempts:
            if before is not None and attempt.began < before.last - _CLOCK:
                faults.append(f"{attempt.name} has begun {before.last - attempt.began:.3f} s before "
                              f"{before.name} wrote for the last time")
            if before is None or attempt.last > before.last:
                before = attempt
        return faults

    def sample_faults(self, samples: int) -> list[str]:
        """Epochs in which a sample is missing or was seen twice; the last one may be cut short."""
        by_epoch: dict[int, Counter[int]] = {}
        for step in self.chain:
            by_epoch.setdefault(step.epoch, Counter()).update(step.samples)
        faults = []
        for epoch, seen in by_epoch.items():
            twice = [sample for sample, times in seen.items() if times > 1]
            missing = set(range(samples)) - seen.keys()
            if twice:
                faults.append(f"epoch {epoch}: {len(twice)} samples seen twice, as {twice[0]}")
            if missing:
                faults.append(f"epoch {epoch}: {len(missing)} samples not seen")
        return faults

    @property
    def parameters(self) -> str | None:
        """Digest of the trained model, if the training has reached its end."""
        ends = [each.parameters for each in self.attempts if each.parameters is not None]
        return ends[-1] if ends else None


def overlap(trails: list[Trail], stage: str) -> float:
    """The share of all jobs' time in the stage in which more than one of them was in it."""
    changes = []
    for trail in trails:
        lines = [line for attempt in trail.attempts[-1:]
                 for at in attempt.lines.values() for line in at]
        for begun, ended in (line["stages"][stage] for line in lines if "stages" in line):
            changes += [(begun, 1), (ended, -1)]
    inside, since, shared, whole = 0, 0.0, 0.0, 0.0
    for at, change in sorted(changes):
        whole += inside * (at - since)
        shared += inside * (at - since) if inside > 1 else 0.0
        inside, since = inside + change, at
    return shared / whole if whole else 0.0
