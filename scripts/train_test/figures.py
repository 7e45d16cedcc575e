# SPDX-License-Identifier: Apache-2.0
"""Figures that experiments measure, with their bars; as lines, JSON and a table."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    what: str
    measured: str
    bar: str
    passed: bool | None  # None: not run, and why is in `measured`

    @property
    def verdict(self) -> str:
        return {True: "pass", False: "FAIL", None: "not run"}[self.passed]


@dataclass
class Report:
    """Of one experiment."""

    name: str
    date: str = ""  # YYYY-MM-DD; "": not noted, as by earlier versions
    program: str = ""  # what `trainyard --version` says
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)  # what the figures were made of

    def add(self, what: str, measured: str, bar: str, passed: bool | None) -> None:
        figure = Figure(what, measured, bar, passed)
        self.figures.append(figure)
        self.say(f"{what}: {measured} (bar: {bar}): {figure.verdict}")

    def say(self, text: str) -> None:
        print(f"{self.name}: {text}", flush=True)

    def at_least(self, what: str, value: float, bar: float, unit: str = "") -> None:
        self.add(what, f"{value:.3f}{unit}", f">= {bar:g}{unit}", value >= bar)

    def at_most(self, what: str, value: float, bar: float, unit: str = "") -> None:
        self.add(what, f"{value:.3g}{unit}", f"<= {bar:g}{unit}", value <= bar)

    def none_of(self, what: str, faults: list[str]) -> None:
        shown = f"{len(faults)}" + (f" ({faults[0]})" if faults else "")
        self.add(what, shown, "0", not faults)

    @property
    def passed(self) -> bool:
        return all(figure.passed is not False for figure in self.figures)


def write(reports: list[Report], folder: Path) -> None:
    """NAME.json for each, and results.md of all that lie in the folder, earlier runs' too: each
    row has its date and program."""
    folder.mkdir(parents=True, exist_ok=True)
    for report in reports:
        (folder / f"{report.name}.json").write_text(json.dumps(asdict(report), indent=2) + "\n")
    rows = ["| experiment | what | measured | bar | | date | program |", "|---" * 7 + "|"]
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text())
        for each in content["figures"]:
            figure = Figure(**each)
            cells = (f"`{content['name']}`", figure.what, figure.measured, figure.bar,
                     figure.verdict, content.get("date") or "-", content.get("program") or "-")
            rows.append(f"| {' | '.join(cells)} |")
    (folder / "results.md").write_text("\n".join(rows) + "\n")
