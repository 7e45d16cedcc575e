# SPDX-License-Identifier: Apache-2.0
"""A day of three users on an installed Trainyard: three nodes join by token over TLS, jobs run as who has
submitted them, things die, nothing is lost, and nobody reads what belongs to another.

day.py; as root, with the Debian package installed. It makes users and removes them again. The nodes share
this machine: each agent has a mount namespace of its own with its own /etc/trainyard.
"""

import argparse
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "attacks")]

from expectations import expect, wait_until  # noqa: E402
from machine import has_control_groups  # noqa: E402
from stage import PATIENCE, Stage, run_as  # noqa: E402

FOLDER = Path("/var/lib/trainyard-day")
SERVICE, ANNA, BEN, OLGA = "trainyard", "ty-anna", "ty-ben", "ty-olga"  # the last is an operator
PEOPLE = (ANNA, BEN, OLGA)
NODES = ("n0", "n1", "n2")

# Counts to N, a step at a time, from where its checkpoint says, and writes down who it is.
TRAINER = """
echo "begin $TRAINYARD_JOB $TRAINYARD_ATTEMPT $(id -un) $$" >>"$1/witness"
done=$(cat "$TRAINYARD_CHECKPOINT_DIR/done" 2>/dev/null || echo 0)
trap 'echo "$done" >"$TRAINYARD_CHECKPOINT_DIR/done"; echo "notice $TRAINYARD_JOB $done" >>"$1/witness"; exit 0' TERM
while [ "$done" -lt "$2" ]; do
  sleep 0.1 & wait $!
  done=$((done + 1))
  echo "$done" >"$TRAINYARD_CHECKPOINT_DIR/new" && mv "$TRAINYARD_CHECKPOINT_DIR/new" "$TRAINYARD_CHECKPOINT_DIR/done"
done
echo "end $TRAINYARD_JOB $TRAINYARD_ATTEMPT $done" >>"$1/witness"
echo "the secret of $(id -un)"
"""


class Day(Stage):
    """Three nodes on this machine, on what is installed."""

    folder, service, users, group = FOLDER, SERVICE, PEOPLE, "trainyard-day"

    def __init__(self, program: Path, launcher: Path) -> None:
        super().__init__(FOLDER)
        self.program, self.launcher = program, launcher

    def set_up(self) -> None:
        service = pwd.getpwnam(SERVICE)
        launcher = self.launcher.stat()
        expect(launcher.st_mode & 0o7777 == 0o4750 and launcher.st_gid == service.pw_gid,
               f"the package has given the launcher its rights: {oct(launcher.st_mode)}")
        for name in ("controller", "checkpoints", *NODES):
            self.make_folder(FOLDER / name, SERVICE, 0o700 if name == "controller" else 0o711)
        (FOLDER / "cluster.toml").write_text('[[nodes]]\nname = "n"\ncount = 3\ngpus = 2\n')
        self.start_controller()
        wait_until("the controller has its keys", (FOLDER / "controller/credential.pub").exists, PATIENCE)
        wait_until("the controller answers", lambda: self.ask("root", "nodes").returncode == 0, PATIENCE)
        for node in NODES:
            self.prepare(node)
            self.start_agent(node)
        wait_until("all nodes are up", lambda: self.nodes_up() == len(NODES), PATIENCE)

    def prepare(self, node: str) -> None:
        """What an operator does on a new node: docs/security.md, "Setting it up"."""
        etc = FOLDER / f"{node}.etc"
        self.make_folder(etc, "root", 0o755)
        self.make_folder(FOLDER / f"{node}.used", "root", 0o700)
        shutil.copy(FOLDER / "controller/credential.pub", etc / "controller.pub")
        (etc / "controller.pub").chmod(0o644)
        (etc / "launcher.conf").write_text(
            f"node {node}\nagent {SERVICE}\nstate {FOLDER / node}\nused {FOLDER / node}.used\n"
            f"program {self.program}\nlog {FOLDER / node}.launcher.log\ngroup trainyard-day-{node}\n")
        token = FOLDER / f"{node}.token"
        answer = self.ask("root", "node", "token", node)
        expect(answer.returncode == 0, f"node token: {answer.stderr}")
        token.touch(mode=0o600)
        shutil.chown(token, SERVICE, SERVICE)
        token.write_text(answer.stdout)

    def start_controller(self) -> None:
        self.start("controller", SERVICE, "--cluster", FOLDER / "cluster.toml", "--state",
                   FOLDER / "controller", "--listen", f"127.0.0.1:{self.port}", "--users", "all", "--tls",
                   "--operators", OLGA, "--policy", "fifo", "--grace", "5", "--heartbeat", "2",
                   "--lease", "15")

    def start_agent(self, node: str = "n0") -> None:
        service = pwd.getpwnam(SERVICE)
        self.start("agent", SERVICE, "--controller", f"127.0.0.1:{self.port}", "--node", node, "--gpus",
                   "2", "--state", FOLDER / node, "--checkpoints", FOLDER / "checkpoints", "--launcher",
                   self.launcher, "--join-token-file", FOLDER / f"{node}.token", name=node,
                   before=("unshare", "--mount", "sh", "-c",
                           'mkdir -p /etc/trainyard && mount --bind "$0" /etc/trainyard && exec "$@"',
                           FOLDER / f"{node}.etc", "setpriv", f"--reuid={service.pw_uid}",
                           f"--regid={service.pw_gid}", "--clear-groups"))

    def nodes(self) -> list[dict]:
        answer = self.ask("root", "nodes", "--json")
        return json.loads(answer.stdout)["nodes"] if answer.returncode == 0 else []

    def nodes_up(self) -> int:
        return sum(node.get("up", False) for node in self.nodes())

    def train(self, user: str, steps: int, *options: object) -> int:
        return self.submit(user, ["/bin/sh", "-c", TRAINER, "trainer", pwd.getpwnam(user).pw_dir, steps],
                           *options)

    def refused(self, user: str, *words: object) -> str:
        answer = self.ask(user, *words)
        expect(answer.returncode != 0, f"{user} may {words}: {answer.stdout}")
        return answer.stderr

    @staticmethod
    def witness(user: str) -> list[list[str]]:
        path = Path(pwd.getpwnam(user).pw_dir) / "witness"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    @staticmethod
    def may_read(user: str, path: Path) -> bool:
        return run_as(user, ["ls" if path.is_dir() else "cat", path]).returncode == 0


def morning(day: Day) -> tuple[int, int]:
    """Two jobs run side by side, each as its user; neither sees the other's."""
    annas = day.train(ANNA, 60, "--name", "bert")
    bens = day.train(BEN, 60, "--name", "resnet")
    for user, job in ((ANNA, annas), (BEN, bens)):
        day.wait_for(user, job, "running")
        wait_until(f"job {job} has begun", lambda user=user: bool(day.witness(user)), PATIENCE)
        expect(day.witness(user)[0][3] == user, f"job {job} runs as {day.witness(user)[0][3]}")
    expect(str(annas) not in re.findall(r"^\s*(\d+)", day.ask(BEN, "status").stdout, re.M),
           "one user sees another's job")
    for words in (("cancel", annas), ("logs", annas), ("resize", annas, "--gpus", "2"), ("status", annas)):
        day.refused(BEN, *words)
    day.refused(BEN, "drain", "n0")
    day.refused(BEN, "node", "token", "n0")
    checkpoints = FOLDER / "checkpoints" / str(annas)
    wait_until("there is a checkpoint", (checkpoints / "done").exists, PATIENCE)
    logs = [path for node in NODES for path in (FOLDER / node / "logs").glob(f"{annas}-*")]
    expect(bool(logs), "the job has a log")
    for path in (checkpoints, checkpoints / "done", *logs, *(log / "rank-0.log" for log in logs),
                 FOLDER / "controller/controller.db", FOLDER / "controller/credential.key"):
        expect(not day.may_read(BEN, path), f"{BEN} may read {path}")
    expect(day.may_read(ANNA, checkpoints / "done"), "users read their own checkpoints")
    pid = day.witness(ANNA)[0][4]
    expect(run_as(BEN, ["kill", "-KILL", pid]).returncode != 0, "one user's signal reaches another's job")
    return annas, bens


def noon(day: Day, annas: int, bens: int) -> None:
    """Controller and agents die. The jobs run on, and no number is given twice."""
    day.kill("controller")
    day.start_controller()
    for node in NODES:
        day.kill(node)
        day.start_agent(node)
    wait_until("all nodes are up again", lambda: day.nodes_up() == len(NODES), PATIENCE)
    for user, job in ((ANNA, annas), (BEN, bens)):
        day.wait_for(user, job, "completed")
        expect([line[0] for line in day.witness(user)] == ["begin", "end"], f"job {job}: {day.witness(user)}")
    expect("the secret of " + ANNA in day.ask(ANNA, "logs", annas).stdout, "users read their own logs")
    expect(day.train(BEN, 1) > bens, "numbers rise")


def afternoon(day: Day) -> None:
    """The operator clears a node: its jobs go on elsewhere from their checkpoints."""
    jobs = [day.train(user, 60) for user in (ANNA, BEN, OLGA)]
    for user, job in zip(PEOPLE, jobs):
        day.wait_for(user, job, "running")
    busy = next(node["node"] for node in day.nodes() if set(map(int, node["jobs"])) & set(jobs))
    answer = day.ask(OLGA, "drain", busy, "--reason", "a new disk")
    expect(answer.returncode == 0, f"an operator may drain: {answer.stderr}")
    nodes = day.ask(ANNA, "nodes").stdout
    expect(f"{busy} is drained by {OLGA}" in nodes and "a new disk" in nodes,
           f"users see who has drained it, and why: {nodes}")
    for user, job in zip(PEOPLE, jobs):
        day.wait_for(user, job, "completed")
        ends = [line for line in day.witness(user) if line[:2] == ["end", str(job)]]
        expect(len(ends) == 1, f"job {job} has ended {len(ends)} times: {day.witness(user)}")
    expect(day.ask(OLGA, "undrain", busy).returncode == 0, "and undrain")
    last = day.train(BEN, 600)
    day.wait_for(BEN, last, "running")
    expect(day.ask(OLGA, "cancel", last).returncode == 0, "an operator may cancel")
    day.wait_for(BEN, last, "cancelled")
    expect(OLGA in json.dumps(day.job(BEN, last)), "and the job says who did it")


def evening(day: Day) -> None:
    """An array of eight, two at a time, and a job that waits for it."""
    before = len(day.witness(ANNA))
    array = day.train(ANNA, 3, "--array", "0-7%2")
    after = day.train(ANNA, 1, "--dependency", f"afterok:{array}")
    day.wait_for(ANNA, after, "completed")
    lines = day.witness(ANNA)[before:]
    expect(sum(line[0] == "end" for line in lines) == 9, f"nine have ended: {lines}")
    expect(lines[-1][1] == str(after), f"the last one is job {after}: {lines}")


def night(day: Day) -> None:
    """Nothing is left of what has ended, and a node whose certificate is revoked goes, and stays out."""
    uids = ",".join(str(pwd.getpwnam(user).pw_uid) for user in PEOPLE)
    wait_until("no process of a job is left", lambda: subprocess.run(
        ["pgrep", "-u", uids], capture_output=True, check=False).returncode != 0, PATIENCE)
    expect(day.ask("root", "node", "revoke", "n2").returncode == 0, "node revoke")
    wait_until("its agent is told why its connection is cut", lambda: "is revoked" in day.logged("n2"),
               PATIENCE)
    wait_until("the node is out", lambda: day.nodes_up() == len(NODES) - 1, PATIENCE)
    day.kill("n2")
    day.start_agent("n2")
    wait_until("it is told so again", lambda: day.logged("n2").count("is revoked") > 1, PATIENCE)
    expect(day.nodes_up() == len(NODES) - 1, "and stays out")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=Path, default=Path("/usr/bin/trainyard"))
    parser.add_argument("--launcher", type=Path, default=Path("/usr/lib/trainyard/trainyard-launcher"))
    options = parser.parse_args()
    expect(os.geteuid() == 0, "needs root, to make users")
    if not has_control_groups():
        print("not checked: this kernel has no control groups, without which no job is started for another")
        return 0
    with Day(options.program, options.launcher) as day:
        try:
            annas, bens = morning(day)
            noon(day, annas, bens)
            afternoon(day)
            evening(day)
            night(day)
        except Exception:
            print(day.outputs(), file=sys.stderr)
            raise
    print("a day of three users on three nodes: nothing lost, nothing twice, nobody read another's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
