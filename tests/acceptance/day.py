# SPDX-License-Identifier: Apache-2.0
"""A day of three users on an installed Trainyard: three nodes join by token over TLS, jobs run as who has
submitted them, things die, nothing is lost, and nobody reads what belongs to another.

day.py; as root, with the Debian package installed. It makes users and removes them again. The nodes share
this machine: each agent has a mount namespace of its own with its own /etc/trainyard.
"""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from expectations import expect, wait_until  # noqa: E402
from machine import has_control_groups  # noqa: E402

PROGRAM = Path("/usr/bin/trainyard")
LAUNCHER = Path("/usr/lib/trainyard/trainyard-launcher")
FOLDER = Path("/var/lib/trainyard-day")
SERVICE, ANNA, BEN, OLGA = "trainyard", "ty-anna", "ty-ben", "ty-olga"  # the last is an operator
PEOPLE = (ANNA, BEN, OLGA)
NODES = ("n0", "n1", "n2")
PATIENCE = 90.0

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


def entry_of(user: str) -> pwd.struct_passwd:
    return pwd.getpwnam(user)


def environment(user: str, port: int) -> dict:
    return {"PATH": "/usr/bin:/bin", "HOME": entry_of(user).pw_dir, "USER": user,
            "TRAINYARD_CONTROLLER": f"127.0.0.1:{port}", "TRAINYARD_CONTROLLER_USER": SERVICE}


class Day:
    def __init__(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.processes: dict[str, subprocess.Popen] = {}
        self.made: list[str] = []

    # -------------------------------------------------------------------------------- the machine

    def __enter__(self) -> "Day":
        self.clear()
        for user in (SERVICE, *PEOPLE):
            try:
                entry_of(user)
            except KeyError:
                expect(user != SERVICE, "the package has made its user")
                subprocess.run(["useradd", "--create-home", user], check=True, capture_output=True)
                self.made.append(user)
        service = entry_of(SERVICE)
        launcher = LAUNCHER.stat()
        expect(launcher.st_mode & 0o7777 == 0o4750 and launcher.st_gid == service.pw_gid,
               f"the package has given the launcher its rights: {oct(launcher.st_mode)}")
        FOLDER.mkdir(mode=0o755)
        FOLDER.chmod(0o755)
        for name in ("controller", "checkpoints", *NODES):
            (FOLDER / name).mkdir(mode=0o711)
            (FOLDER / name).chmod(0o700 if name == "controller" else 0o711)
            os.chown(FOLDER / name, service.pw_uid, service.pw_gid)
        (FOLDER / "cluster.toml").write_text('[[nodes]]\nname = "n"\ncount = 3\ngpus = 2\n')
        self.start_controller()
        wait_until("the controller has its keys", (FOLDER / "controller/credential.pub").exists, PATIENCE)
        for node in NODES:
            self.prepare(node)
            self.start_agent(node)
        wait_until("all nodes are up", lambda: self.nodes_up() == len(NODES), PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.kill(name)
        self.clear()
        for user in self.made:
            subprocess.run(["userdel", "--remove", user], check=False, capture_output=True)

    def clear(self) -> None:
        for group in sorted(Path("/sys/fs/cgroup").glob("**/trainyard-day*"), key=lambda at: -len(at.parts)):
            for attempt in [*group.glob("*-*"), group]:
                for pid in (attempt / "cgroup.procs").read_text().split() if attempt.exists() else []:
                    os.kill(int(pid), signal.SIGKILL)
                for _ in range(50):
                    try:
                        attempt.rmdir()
                        break
                    except FileNotFoundError:
                        break
                    except OSError:
                        time.sleep(0.05)
        shutil.rmtree(FOLDER, ignore_errors=True)

    def prepare(self, node: str) -> None:
        """What an operator does on a new node: docs/security.md, "Setting it up"."""
        etc = FOLDER / f"{node}.etc"
        etc.mkdir(mode=0o755)
        etc.chmod(0o755)
        (FOLDER / f"{node}.used").mkdir(mode=0o700)
        shutil.copy(FOLDER / "controller/credential.pub", etc / "controller.pub")
        (etc / "controller.pub").chmod(0o644)
        (etc / "launcher.conf").write_text(
            f"node {node}\nagent {SERVICE}\nstate {FOLDER / node}\nused {FOLDER / node}.used\n"
            f"log {FOLDER / node}.log\ngroup trainyard-day-{node}\n")
        token = FOLDER / f"{node}.token"
        answer = self.ask("root", "node", "token", node)
        expect(answer.returncode == 0, f"node token: {answer.stderr}")
        token.touch(mode=0o600)
        os.chown(token, entry_of(SERVICE).pw_uid, entry_of(SERVICE).pw_gid)
        token.write_text(answer.stdout)

    def start_controller(self) -> None:
        self.start("controller", ["--cluster", FOLDER / "cluster.toml", "--state", FOLDER / "controller",
                                  "--listen", f"127.0.0.1:{self.port}", "--users", "all", "--tls",
                                  "--operators", OLGA, "--policy", "fifo", "--grace", "5",
                                  "--heartbeat", "2", "--lease", "15"])

    def start_agent(self, node: str) -> None:
        self.start("agent", ["--controller", f"127.0.0.1:{self.port}", "--node", node, "--gpus", "2",
                             "--state", FOLDER / node, "--checkpoints", FOLDER / "checkpoints",
                             "--launcher", LAUNCHER, "--join-token-file", FOLDER / f"{node}.token"],
                   etc=FOLDER / f"{node}.etc", name=node)

    def start(self, command: str, options: list, etc: Path | None = None, name: str = "") -> None:
        service = entry_of(SERVICE)
        words = ["setpriv", f"--reuid={service.pw_uid}", f"--regid={service.pw_gid}", "--clear-groups",
                 str(PROGRAM), command, *map(str, options)]
        if etc:
            words = ["unshare", "--mount", "sh", "-c",
                     'mkdir -p /etc/trainyard && mount --bind "$0" /etc/trainyard && exec "$@"', str(etc), *words]
        output = (FOLDER / f"{name or command}.out").open("ab")
        self.processes[name or command] = subprocess.Popen(
            words, stdout=output, stderr=output, cwd="/",
            env={**environment(SERVICE, self.port), "XDG_STATE_HOME": str(FOLDER)})

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    # -------------------------------------------------------------------------------------- calls

    def ask(self, user: str, *words: object) -> subprocess.CompletedProcess:
        entry = entry_of(user)
        return subprocess.run([str(PROGRAM), *map(str, words)], user=entry.pw_uid, group=entry.pw_gid,
                              extra_groups=[], cwd="/", capture_output=True, text=True, timeout=PATIENCE,
                              env=environment(user, self.port))

    def nodes_up(self) -> int:
        answer = self.ask("root", "nodes", "--json")
        return sum(node.get("up", False) for node in json.loads(answer.stdout)["nodes"]) \
            if answer.returncode == 0 else 0

    def submit(self, user: str, steps: int, *options: object) -> int:
        home = entry_of(user).pw_dir
        answer = self.ask(user, "submit", "--gpus", "1", *options, "--", "/bin/sh", "-c", TRAINER, "trainer",
                          home, steps)
        expect(answer.returncode == 0, f"submit: {answer.stderr}")
        return int(re.search(r"\d+", answer.stdout).group())

    def job(self, user: str, job: int) -> dict:
        answer = self.ask(user, "status", job, "--json")
        expect(answer.returncode == 0, f"status {job}: {answer.stderr}")
        return json.loads(answer.stdout)["jobs"][0]

    def wait_for(self, user: str, job: int, state: str) -> None:
        end = time.monotonic() + PATIENCE
        while (now := self.job(user, job))["state"] != state:
            expect(time.monotonic() < end and now["state"] not in ("failed", "rejected"),
                   f"job {job} is not {state}: {now}\n{self.outputs()}")
            time.sleep(0.1)

    def refused(self, user: str, *words: object) -> str:
        answer = self.ask(user, *words)
        expect(answer.returncode != 0, f"{user} may {words}: {answer.stdout}")
        return answer.stderr

    def outputs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()[-2000:]}"
                         for path in sorted([*FOLDER.glob("*.out"), *FOLDER.glob("*.log")]))

    @staticmethod
    def witness(user: str) -> list[list[str]]:
        path = Path(entry_of(user).pw_dir) / "witness"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    @staticmethod
    def may_read(user: str, path: Path) -> bool:
        entry = entry_of(user)
        return subprocess.run(["ls" if path.is_dir() else "cat", str(path)], user=entry.pw_uid,
                              group=entry.pw_gid, extra_groups=[], capture_output=True,
                              check=False).returncode == 0


def morning(day: Day) -> tuple[int, int]:
    """Two jobs run side by side, each as its user; neither sees the other's."""
    annas = day.submit(ANNA, 60, "--name", "bert")
    bens = day.submit(BEN, 60, "--name", "resnet")
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
    entry = entry_of(BEN)
    killed = subprocess.run(["kill", "-KILL", pid], user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
                            capture_output=True, check=False)
    expect(killed.returncode != 0, "one user's signal reaches another's job")
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
    expect(day.submit(BEN, 1) > bens, "numbers rise")


def afternoon(day: Day) -> None:
    """The operator clears a node: its jobs go on elsewhere from their checkpoints."""
    jobs = [day.submit(user, 60) for user in (ANNA, BEN, OLGA)]
    for user, job in zip(PEOPLE, jobs):
        day.wait_for(user, job, "running")
    nodes = json.loads(day.ask(OLGA, "nodes", "--json").stdout)["nodes"]
    busy = next(node["node"] for node in nodes if set(map(int, node["jobs"])) & set(jobs))
    answer = day.ask(OLGA, "drain", busy)
    expect(answer.returncode == 0, f"an operator may drain: {answer.stderr}")
    for user, job in zip(PEOPLE, jobs):
        day.wait_for(user, job, "completed")
        ends = [line for line in day.witness(user) if line[:2] == ["end", str(job)]]
        expect(len(ends) == 1, f"job {job} has ended {len(ends)} times: {day.witness(user)}")
    expect(day.ask(OLGA, "undrain", busy).returncode == 0, "and undrain")
    last = day.submit(BEN, 600)
    day.wait_for(BEN, last, "running")
    expect(day.ask(OLGA, "cancel", last).returncode == 0, "an operator may cancel")
    day.wait_for(BEN, last, "cancelled")
    expect(OLGA in json.dumps(day.job(BEN, last)), "and the job says who did it")


def evening(day: Day) -> None:
    """An array of eight, two at a time, and a job that waits for it."""
    before = len(day.witness(ANNA))
    array = day.submit(ANNA, 3, "--array", "0-7%2")
    after = day.submit(ANNA, 1, "--dependency", f"afterok:{array}")
    day.wait_for(ANNA, after, "completed")
    lines = day.witness(ANNA)[before:]
    expect(sum(line[0] == "end" for line in lines) == 9, f"nine have ended: {lines}")
    expect(lines[-1][1] == str(after), f"the last one is job {after}: {lines}")


def night(day: Day) -> None:
    """Nothing is left of what has ended, and a node with a certificate that is revoked stays out."""
    wait_until("no process of a job is left", lambda: subprocess.run(
        ["pgrep", "-u", ",".join(str(entry_of(user).pw_uid) for user in PEOPLE)], capture_output=True,
        check=False).returncode != 0, PATIENCE)
    expect(day.ask("root", "node", "revoke", "n2").returncode == 0, "node revoke")
    day.kill("n2")
    day.start_agent("n2")
    wait_until("the node is out", lambda: day.nodes_up() == len(NODES) - 1, PATIENCE)


def main() -> int:
    expect(os.geteuid() == 0, "needs root, to make users")
    if not has_control_groups():
        print("not checked: this kernel has no control groups, without which no job is started for another")
        return 0
    with Day() as day:
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
