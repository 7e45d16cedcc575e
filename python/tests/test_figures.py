# SPDX-License-Identifier: Apache-2.0
"""The tables of scripts/train_test: each row says when and by which program it was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
pytestmark = pytest.mark.skipif(not SCRIPTS.is_dir(), reason="without the repository's scripts")


def test_a_row_has_the_date_and_the_program_of_its_own_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.delitem(sys.modules, "train_test", raising=False)
    from train_test.figures import Report, write  # type: ignore[import]

    old = Report("loader", date="2026-11-01", program="trainyard 0.1.0")
    old.at_least("samples/s", 2, 1)
    write([old], tmp_path)
    undated = json.loads((tmp_path / "loader.json").read_text()) | {"name": "mixed"}
    del undated["date"], undated["program"]  # as versions up to 0.2.0 wrote it
    (tmp_path / "mixed.json").write_text(json.dumps(undated))
    new = Report("resume", date="2026-11-24", program="trainyard 0.2.0")
    new.none_of("iterations lost", ["17"])
    write([new], tmp_path)
    rows = (tmp_path / "results.md").read_text().splitlines()
    assert rows[0].count("|") == rows[1].count("|")
    assert rows[2:] == [
        "| `loader` | samples/s | 2.000 | >= 1 | pass | 2026-11-01 | trainyard 0.1.0 |",
        "| `mixed` | samples/s | 2.000 | >= 1 | pass | - | - |",
        "| `resume` | iterations lost | 1 (17) | 0 | FAIL | 2026-11-24 | trainyard 0.2.0 |",
    ]
