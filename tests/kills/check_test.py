# SPDX-License-Identifier: Apache-2.0
"""check.py sees each kind of mistake. Run by pytest."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import check  # noqa: E402

CLIENT = "ask a 2\nask b 1\nack a 1\nack b 2\n"
NODES = {"n0": "begin 1 1 0 70 0\nbegin 1 2 0 80 0\nend 1 2 0 80 0\n",
         "n1": "begin 1 1 1 71 0\nbegin 1 2 1 81 0\nend 1 2 1 81 0\n"
               "begin 2 1 0 90 1\nend 2 1 0 90 1\n"}
STATES = {1: "completed", 2: "completed"}


def verdict_of(folder: Path, client: str = CLIENT, nodes: dict[str, str] | None = None,
               states: dict[int, str] | None = None) -> str:
    (folder / "client.log").write_text(client)
    for name, lines in (NODES if nodes is None else nodes).items():
        (folder / "nodes" / name).mkdir(parents=True)
        (folder / "nodes" / name / "witness").write_text(lines)
    jobs = [{"job": str(job), "state": state}
            for job, state in (STATES if states is None else states).items()]
    (folder / "states.json").write_text(json.dumps({"jobs": jobs}))
    verdict = check(folder)
    assert verdict.good == (not verdict.lost and not verdict.twice and not verdict.held)
    return str(verdict)


def test_of_a_good_run_it_says_so(tmp_path: Path) -> None:
    assert verdict_of(tmp_path) == ("2 acknowledged, 0 lost, 0 twice "
                                    "(3 attempts, 0 GPUs held twice)")


@pytest.mark.parametrize(("change", "words"), [
    # A job that never ran, one that the controller has forgotten, one that it calls failed.
    ({"client": CLIENT + "ask c 1\nack c 3\n"}, "job 3 (c): no attempt of it has done its work"),
    ({"states": {1: "completed"}}, "job 2 (b): is not known"),
    ({"states": {1: "completed", 2: "failed"}}, "job 2 (b): is failed"),
    # A gang of which one rank has not done its work.
    ({"nodes": {**NODES, "n0": "begin 1 2 0 80 0\n"}}, "job 1 (a): no attempt"),
    ({"nodes": {**NODES, "n2": "begin 9 1 0 5 0\n"}}, "job 9: has run, and the controller"),
    ({"nodes": {**NODES, "n2": "end 2 2 0 5 0\n"}}, "ends and has not begun"),
    # Two numbers for a token, two tokens for a number, two attempts at once, two on a GPU.
    ({"client": CLIENT + "ack a 4\n"}, "a was given jobs 1 and 4"),
    ({"client": CLIENT + "ask c 1\nack c 2\n"}, "job 2 was given to b and c"),
    ({"nodes": {**NODES, "n2": "twice 2 2 0 5 2-1-0\n"}}, "2-1-0 was there, too"),
    ({"nodes": {**NODES, "n2": "held 2 2 0 5 1\n"}}, "GPU 1 was held by another"),
])
def test_it_sees(tmp_path: Path, change: dict[str, object], words: str) -> None:
    assert words in verdict_of(tmp_path, **change)  # type: ignore[arg-type]
