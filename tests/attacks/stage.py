# SPDX-License-Identifier: Apache-2.0
"""The machine that is attacked: users who are made and removed again, and a cluster with a launcher."""

import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from expectations import expect, wait_until

FOLDER = Path("/var/lib/trainyard-test")  # compiled into trainyard-launcher-of-tests
AGENT, ANNA, BEN = "ty-agent", "ty-anna", "ty-ben"  # the first runs the controller, too
USERS = (AGENT, ANNA, BEN)
GPU_DEVICES = ((1, 7), (1, 5))  # /dev/full and /dev/zero stand for two GPUs of three
PATIENCE = 90.0
ENDED = ("completed", "failed", "cancelled", "rejected")


def uid_of(user: str) -> int:
    return pwd.getpwnam(user).pw_uid


def run_as(user: str, words: list, **more) -> subprocess.CompletedProcess:
    entry = pwd.getpwnam(user)
    groups = more.pop("groups", [])
    return subprocess.run([str(word) for word in words], user=entry.pw_uid, group=entry.pw_gid,
                          extra_groups=groups, capture_output=True, timeout=PATIENCE, **more)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stage:
    """Made by `with`: users, folders, control groups and a cluster; all of it is gone afterwards."""

    folder = FOLDER
    service = AGENT  # runs controller and agents
    users = USERS  # those that are made
    group = "trainyard-test"  # what names of control groups begin with

    def __init__(self, build: Path) -> None:
        self.build = build
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen] = {}
        self.config = FOLDER / "launcher.conf"
        self.launcher = FOLDER / "bin/trainyard-launcher"
        self.program = FOLDER / "bin/trainyard"
        self.state = FOLDER / "agent"
        self.used = FOLDER / "used"
        self.log = FOLDER / "launcher.log"
        self.key = FOLDER / "controller/credential.key"

    # ------------------------------------------------------------------------------ up and down

    def __enter__(self) -> "Stage":
        # Users, folders and groups are the machine's: another run of this waits.
        self.alone = open("/tmp/trainyard-attacks.lock", "w", encoding="utf-8")
        fcntl.flock(self.alone, fcntl.LOCK_EX)
        self.clear()
        for user in self.users:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", user], check=True,
                           capture_output=True)
        self.make_folder(self.folder, "root", 0o755)
        try:
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.kill(name)
        self.clear()
        self.alone.close()

    @staticmethod
    def make_folder(path: Path, user: str, mode: int) -> None:
        path.mkdir(mode=mode)
        path.chmod(mode)
        os.chown(path, uid_of(user), pwd.getpwnam(user).pw_gid)

    def set_up(self) -> None:
        self.make_folder(FOLDER / "bin", "root", 0o755)
        for source, target in (("trainyard", self.program),
                               ("trainyard-launcher-of-tests", self.launcher)):
            shutil.copy(self.build / source, target)
            target.chmod(0o755)
        os.chown(self.launcher, 0, pwd.getpwnam(AGENT).pw_gid)
        self.launcher.chmod(0o4750)
        self.make_folder(self.used, "root", 0o700)
        for folder in (self.state, FOLDER / "controller"):
            self.make_folder(folder, AGENT, 0o700)
        for gpu, (major, minor) in enumerate(GPU_DEVICES):
            os.mknod(FOLDER / f"gpu{gpu}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
            (FOLDER / f"gpu{gpu}").chmod(0o666)
        self.write_config()
        self.start_controller()
        key = FOLDER / "controller/credential.pub"
        wait_until("the controller has written its public key", key.exists, PATIENCE)
        shutil.copy(key, FOLDER / "controller.pub")
        self.start_agent()
        wait_until("the controller answers", lambda: self.ask("root", "nodes").returncode == 0, PATIENCE)

    def clear(self) -> None:
        """Also what a run that was killed has left."""
        root = Path("/sys/fs/cgroup")
        for top in [*root.glob(f"{self.group}*"), *root.glob(f"*/{self.group}*")]:
            for group in [*top.glob("*-*"), top]:
                for pid in (group / "cgroup.procs").read_text().split() if group.exists() else []:
                    os.kill(int(pid), signal.SIGKILL)
                self.remove_group(group)
        for user in self.users:
            try:
                uid = uid_of(user)
            except KeyError:
                continue
            subprocess.run(["pkill", "-KILL", "-U", str(uid)], check=False)
            wait_until(f"processes of {user} are left",
                       lambda: subprocess.run(["pgrep", "-U", str(uid)], check=False,
                                              capture_output=True).returncode != 0, PATIENCE)
            subprocess.run(["userdel", "--remove", user], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def remove_group(group: Path) -> None:
        for _ in range(100):
            try:
                group.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)

    def write_config(self, path: Path | None = None, **changed: object) -> None:
        settings = {"agent": AGENT, "node": "n0", "state": self.state, "program": self.program,
                    "key": FOLDER / "controller.pub", "used": self.used, "log": self.log,
                    "group": "trainyard-test", "devices": FOLDER / "gpu", "processes": "200"}
        settings.update(changed)
        path = path or self.config
        path.write_text("# of a test\n" + "".join(f"{name} {value}\n" for name, value in settings.items()))
        path.chmod(0o644)

    def start_controller(self) -> None:
        cluster = FOLDER / "cluster.toml"
        cluster.write_text('[[nodes]]\nname = "n"\ngpus = 3\n')
        self.start("controller", AGENT, "--cluster", cluster, "--state", FOLDER / "controller",
                   "--listen", f"127.0.0.1:{self.port}", "--users", "all")

    def start_agent(self) -> None:
        self.start("agent", AGENT, "--controller", f"127.0.0.1:{self.port}", "--node", "n0",
                   "--gpus", "3", "--state", self.state, "--launcher", self.launcher)

    @contextlib.contextmanager
    def second_node(self) -> Iterator[None]:
        """n1 is there meanwhile: an agent in a mount namespace of its own, where the launcher's settings are
        those of n1, as on another machine; its control groups are beside those of n0."""
        config, folder, used = (FOLDER / name for name in ("n1.conf", "n1", "n1.used"))
        self.make_folder(folder, AGENT, 0o700)
        self.make_folder(used, "root", 0o700)
        self.write_config(config, node="n1", state=folder, used=used, log=FOLDER / "n1.launcher.log",
                          group=f"{self.group}-n1")
        entry = pwd.getpwnam(AGENT)
        self.as_root("node", "add", "n1", "--gpus", "3")
        self.start("agent", AGENT, "--controller", f"127.0.0.1:{self.port}", "--node", "n1", "--gpus", "3",
                   "--state", folder, "--launcher", self.launcher, name="n1",
                   before=("unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"',
                           config, self.config, "setpriv", f"--reuid={entry.pw_uid}",
                           f"--regid={entry.pw_gid}", "--clear-groups"))

        def nodes_up() -> list[bool]:
            answer = self.ask("root", "nodes", "--json")
            expect(answer.returncode == 0, f"nodes: {answer.stderr}")
            return [node.get("up", False) for node in json.loads(answer.stdout)["nodes"]]

        try:
            wait_until("n1 is up", lambda: all(nodes_up()), PATIENCE)
            yield
        finally:
            self.kill("n1")
            self.as_root("node", "remove", "n1")

    def as_root(self, *words: object) -> None:
        answer = self.ask("root", *words)
        expect(answer.returncode == 0, f"{words}: {answer.stderr}")

    def start(self, command: str, user: str, *options: object, name: str = "",
              before: tuple = ()) -> None:
        """`before`: what is to start it as that user, in place of us."""
        entry = pwd.getpwnam(user)
        output = (self.folder / f"{name or command}.log").open("ab")
        self.processes[name or command] = subprocess.Popen(
            [*before, self.program, command, *map(str, options)],
            user=0 if before else entry.pw_uid, group=0 if before else entry.pw_gid,
            extra_groups=[], stdout=output, stderr=output, cwd="/",
            env={**self.environment(user), "SMUGGLED": "by the agent"})

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes.pop(name).wait()

    # ------------------------------------------------------------------------------------- calls

    def environment(self, user: str, port: int = 0, service: str = "") -> dict:
        return {"PATH": "/usr/bin:/bin", "HOME": pwd.getpwnam(user).pw_dir, "USER": user,
                "TRAINYARD_CONTROLLER": f"127.0.0.1:{port or self.port}",
                "TRAINYARD_CONTROLLER_USER": service or self.service}

    def ask(self, user: str, *words: object, port: int = 0,
            service: str = "") -> subprocess.CompletedProcess:
        """A command of a client, as that user."""
        return run_as(user, [self.program, *words], cwd="/", text=True,
                      env=self.environment(user, port, service))

    def submit(self, user: str, command: list, *options: object) -> int:
        gpus = () if "--gpus" in options else ("--gpus", "1")
        answer = self.ask(user, "submit", *gpus, *options, "--", *command)
        expect(answer.returncode == 0, f"submit: {answer.stderr}")
        return int(re.search(r"\d+", answer.stdout).group())

    def job(self, user: str, job: int) -> dict:
        answer = self.ask(user, "status", job, "--json")
        expect(answer.returncode == 0, f"status {job}: {answer.stderr}")
        return json.loads(answer.stdout)["jobs"][0]

    def reason(self, user: str, job: int) -> str:
        found = self.job(user, job)
        return f"{found['state']}, {found['reason']} {found['note']}"

    def wait_for(self, user: str, job: int, *states: str) -> dict:
        """Until the job is in one of the states; none else at its end."""
        end = time.monotonic() + PATIENCE
        while (now := self.job(user, job))["state"] not in states:
            expect(time.monotonic() < end and now["state"] not in ENDED,
                   f"job {job} is not {states}: {now}\n{self.logs(user, job)}\n{self.outputs()}")
            time.sleep(0.1)
        return now

    def logs(self, user: str, job: int) -> str:
        return self.ask(user, "logs", job).stdout

    def logged(self, by: str) -> str:
        path = self.folder / f"{by}.log"
        return path.read_text() if path.exists() else ""

    def outputs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()[-2000:]}"
                         for path in sorted(self.folder.glob("*.log")))
