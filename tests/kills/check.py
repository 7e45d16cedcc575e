# SPDX-License-Identifier: Apache-2.0
"""What became of the jobs of a run of kills.py: check.py FOLDER.

Reads what the client was told (`client.log`, which it wrote itself), what the workers have seen
(the files `witness` of the nodes) and what the controller says at the end (`states.json`), and
compares. Knows nothing of how the run was made, and shares no code with the product.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Attempt:
    """What the witnesses of one attempt have written: ranks by their last word."""

    begun: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)


@dataclass
class Verdict:
    acknowledged: int = 0
    attempts: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)  # GPUs by two at once

    @property
    def good(self) -> bool:
        return not (self.lost or self.twice or self.held)

    def __str__(self) -> str:
        findings = "".join(f"\n  {line}" for line in self.lost + self.twice + self.held)
        return (f"{self.acknowledged} acknowledged, {len(self.lost)} lost, {len(self.twice)} twice "
                f"({self.attempts} attempts, {len(self.held)} GPUs held twice){findings}")


def check(folder: Path) -> Verdict:
    verdict = Verdict()
    gpus: dict[str, int] = {}
    numbers = read_client(folder, gpus, verdict)
    attempts = read_witnesses(folder, verdict)
    verdict.attempts = sum(len(of_job) for of_job in attempts.values())
    states = {int(job["job"]): job["state"]
              for job in json.loads((folder / "states.json").read_text())["jobs"]}
    for token, number in sorted(numbers.items()):
        verdict.acknowledged += 1
        ranks = set(range(gpus[token]))
        if not any(attempt.ended >= ranks for attempt in attempts.get(number, {}).values()):
            verdict.lost.append(f"job {number} ({token}): no attempt of it has done its work")
        elif states.get(number) != "completed":
            verdict.lost.append(f"job {number} ({token}): is {states.get(number, 'not known')}")
    for number in sorted(set(attempts) - set(states)):
        verdict.lost.append(f"job {number}: has run, and the controller does not know it")
    return verdict


def read_client(folder: Path, gpus: dict[str, int], verdict: Verdict) -> dict[str, int]:
    """The number of each token, as the client was told."""
    numbers: dict[str, int] = {}
    owners: dict[int, str] = {}
    for line in (folder / "client.log").read_text().splitlines():
        what, token, value = line.split()
        if what == "ask":
            gpus[token] = int(value)
            continue
        number = int(value)
        if numbers.setdefault(token, number) != number:
            verdict.twice.append(f"{token} was given jobs {numbers[token]} and {number}")
        if owners.setdefault(number, token) != token:
            verdict.twice.append(f"job {number} was given to {owners[number]} and {token}")
    return numbers


def read_witnesses(folder: Path, verdict: Verdict) -> dict[int, dict[int, Attempt]]:
    """By job and attempt."""
    attempts: dict[int, dict[int, Attempt]] = defaultdict(lambda: defaultdict(Attempt))
    for file in sorted(folder.glob("nodes/*/witness")):
        for line in file.read_text().splitlines():
            what, job, number, rank, _, more = line.split()
            attempt = attempts[int(job)][int(number)]
            where = f"job {job}, attempt {number}, rank {rank} on {file.parent.name}"
            if what == "twice":
                verdict.twice.append(f"{where}: {more} was there, too")
            elif what == "held":
                verdict.held.append(f"{where}: GPU {more} was held by another")
            elif what == "begin":
                attempt.begun.add(int(rank))
            elif int(rank) in attempt.begun:
                attempt.ended.add(int(rank))
            else:
                verdict.lost.append(f"{where}: ends and has not begun")
    return attempts


def main() -> int:
    verdict = check(Path(sys.argv[1]))
    print(verdict)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
