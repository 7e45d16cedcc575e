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
                                    "(3 attempts, 0 steps, 0 GPUs held twice)")


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


GOOD = ("script 1 begin\nbegin 1 0 0\nbegin 1 0 1\nend 1 0 1\nend 1 0 0\nsrun 1 0 0\n"
        "begin 1 1 0\nbegin 1 1 1\nend 1 1 1\nend 1 1 0\nsrun 1 1 0\n"
        "begin 1 2 0\nbegin 1 2 1\nend 1 2 1\nend 1 2 0\nsrun 1 2 0\nscript 1 end\n")
KILLED = GOOD.replace("end 1 1 0\n", "").replace("srun 1 1 0", "srun 1 1 137")


def script_of(folder: Path, witness: str, state: str = "completed", kills: str = "") -> str:
    (folder / "steps").mkdir()
    (folder / "steps" / "3").write_text(witness)
    (folder / "kills.log").write_text(kills)
    return verdict_of(folder, CLIENT + "ask c 0\nack c 3\n", states={**STATES, 3: state})


def test_of_a_good_script_it_says_so(tmp_path: Path) -> None:
    assert script_of(tmp_path, GOOD).startswith("3 acknowledged, 0 lost, 0 twice (4 attempts, 3 steps")


def test_a_script_may_fail_of_what_was_killed(tmp_path: Path) -> None:
    assert "0 lost" in script_of(tmp_path, KILLED, "failed", "task 3 1\n")


@pytest.mark.parametrize(("witness", "state", "words"), [
    ("", "completed", "is completed"),
    (GOOD, "failed", "is failed"),
    (GOOD.replace("script 1 end\n", ""), "completed", "is completed"),
    (GOOD.replace("end 1 1 0\n", ""), "completed", "srun says 0, and of its tasks {'1'} have ended"),
    (KILLED, "failed", "srun says 137, and nothing of it was killed"),
    (GOOD + "begin 1 1 0\n", "completed", "('1', '1', '0') has begun 2 times"),
    (GOOD + "script 1 begin\n", "completed", "attempt 1 has begun twice"),
    (GOOD + "twice 1 1 0\n", "completed", "['1', '0'] was there, too"),
])
def test_it_sees_of_scripts(tmp_path: Path, witness: str, state: str, words: str) -> None:
    assert words in script_of(tmp_path, witness, state)
