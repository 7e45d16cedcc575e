# SPDX-License-Identifier: Apache-2.0
"""What became of the jobs of a run of kills.py: check.py FOLDER.

Reads what the client was told (`client.log`, which it wrote itself), what the workers have seen
(the files `witness` of the nodes, and `steps` of scripts) and what the controller says at the end (`states.json`), and
compares. Knows nothing of how the run was made, and shares no code with the product.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
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
    steps: int = 0

    @property
    def good(self) -> bool:
        return not (self.lost or self.twice or self.held)

    def __str__(self) -> str:
        findings = "".join(f"\n  {line}" for line in self.lost + self.twice + self.held)
        return (f"{self.acknowledged} acknowledged, {len(self.lost)} lost, {len(self.twice)} twice "
                f"({self.attempts} attempts, {self.steps} steps, {len(self.held)} GPUs held twice){findings}")


class Script:
    """What script.sh and the tasks of its steps have written, and whether it fits what was killed."""

    TASKS = {"0", "1"}

    def __init__(self, job: int, witness: Path, kills: dict[int, list[tuple[str, str]]]) -> None:
        self.name = f"job {job}, a script"
        self.kills = kills[job]  # kind and attempt
        self.begun: list[str] = []  # attempts
        self.ended: set[str] = set()
        self.statuses: dict[tuple[str, str], int] = {}  # of srun, by attempt and step
        self.tasks: dict[str, Counter[tuple[str, str, str]]] = defaultdict(Counter)
        self.twice: list[str] = []
        for line in witness.read_text().splitlines() if witness.exists() else []:
            what, attempt, *more = line.split()
            if what == "script":
                (self.begun.append if more == ["begin"] else self.ended.add)(attempt)
            elif what == "srun":
                self.statuses[attempt, more[0]] = int(more[1])
            elif what == "twice":
                self.twice.append(f"{self.name}, attempt {attempt}: task {more} was there, too")
            else:
                self.tasks[what][attempt, more[0], more[1]] += 1
        self.twice += [f"{self.name}: {task} has begun {times} times"
                       for task, times in self.tasks["begin"].items() if times > 1]
        self.twice += [f"{self.name}: attempt {attempt} has begun twice"
                       for attempt, times in Counter(self.begun).items() if times > 1]

    def wrong(self, job: dict[str, str]) -> list[str]:
        found = []
        last = self.begun[-1] if self.begun else ""
        for (attempt, step), status in self.statuses.items():
            ended = {rank for (a, s, rank) in self.tasks["end"] if (a, s) == (attempt, step)}
            if status == 0 and ended != self.TASKS:
                found.append(f"attempt {attempt}, step {step}: srun says 0, and of its tasks {ended} have ended")
            if status != 0 and attempt == last and attempt not in {a for _, a in self.kills}:
                found.append(f"attempt {attempt}, step {step}: srun says {status}, and nothing of it was killed")
        of_last = [status for (attempt, _), status in self.statuses.items() if attempt == last]
        done = last in self.ended and len(of_last) == 3
        as_expected = {"completed": done and not any(of_last), "failed": done and any(of_last)}
        if not as_expected.get(job.get("state", ""), False):
            found.append(f"is {job.get('state', 'not known')} ({job.get('reason', '')} {job.get('note', '')}), "
                         f"and its sruns have said {of_last}")
        return [f"{self.name}: {what}" for what in found]


def check(folder: Path) -> Verdict:
    verdict = Verdict()
    gpus: dict[str, int] = {}
    numbers = read_client(folder, gpus, verdict)
    attempts = read_witnesses(folder, verdict)
    verdict.attempts = sum(len(of_job) for of_job in attempts.values())
    jobs = {int(job["job"]): job for job in json.loads((folder / "states.json").read_text())["jobs"]}
    states = {number: job["state"] for number, job in jobs.items()}
    kills = read_kills(folder)
    for token, number in sorted(numbers.items()):
        verdict.acknowledged += 1
        if gpus[token] == 0:
            script = Script(number, folder / "steps" / str(number), kills)
            verdict.attempts += len(script.begun)
            verdict.twice += script.twice
            verdict.steps += len(script.statuses)
            verdict.lost += script.wrong(jobs.get(number, {}))
            continue
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


def read_kills(folder: Path) -> dict[int, list[tuple[str, str]]]:
    """Of jobs: what kind of process, of which attempt."""
    kills: dict[int, list[tuple[str, str]]] = defaultdict(list)
    path = folder / "kills.log"
    for line in path.read_text().splitlines() if path.exists() else []:
        kind, job, attempt = line.split()
        kills[int(job)].append((kind, attempt))
    return kills


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
