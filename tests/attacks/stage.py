# SPDX-License-Identifier: Apache-2.0
"""The machine that is attacked: users who are made and removed again, and a cluster with a launcher."""

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
from pathlib import Path

from expectations import expect, wait_until

FOLDER = Path("/var/lib/trainyard-test")  # compiled into trainyard-launcher-of-tests
AGENT, ANNA, BEN = "ty-agent", "ty-anna", "ty-ben"  # the first runs the controller, too
USERS = (AGENT, ANNA, BEN)
GPU_DEVICES = ((1, 7), (1, 5))  # /dev/full and /dev/zero stand for two GPUs of three
PATIENCE = 60.0


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
    def __init__(self, build: Path) -> None:
        self.build = build
        self.service = AGENT
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
        self.clear()
        for user in USERS:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", user], check=True,
                           capture_output=True)
        FOLDER.mkdir(mode=0o755)
        FOLDER.chmod(0o755)
        (FOLDER / "bin").mkdir(mode=0o755)
        for source, target in (("trainyard", self.program),
                               ("trainyard-launcher-of-tests", self.launcher)):
            shutil.copy(self.build / source, target)
            target.chmod(0o755)
        os.chown(self.launcher, 0, pwd.getpwnam(AGENT).pw_gid)
        self.launcher.chmod(0o4750)
        self.used.mkdir(mode=0o700)
        for folder, user in ((self.state, AGENT), (FOLDER / "controller", AGENT)):
            folder.mkdir(mode=0o700)
            os.chown(folder, uid_of(user), pwd.getpwnam(user).pw_gid)
        for gpu, (major, minor) in enumerate(GPU_DEVICES):
            os.mknod(FOLDER / f"gpu{gpu}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
            (FOLDER / f"gpu{gpu}").chmod(0o666)
        self.write_config()
        self.start_controller()
        key = FOLDER / "controller/credential.pub"
        wait_until("the controller has written its public key", key.exists, PATIENCE)
        shutil.copy(key, FOLDER / "controller.pub")
        self.start_agent()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.clear()

    def clear(self) -> None:
        """Also what a run that was killed has left."""
        for mount in Path("/sys/fs/cgroup").glob("*/trainyard-test/*-*"):
            for pid in (mount / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        groups = [*Path("/sys/fs/cgroup").glob("*/trainyard-test/*-*"),
                  *Path("/sys/fs/cgroup").glob("*/trainyard-test")]
        for group in groups:
            self.remove_group(group)
        for user in USERS:
            try:
                uid = uid_of(user)
            except KeyError:
                continue
            subprocess.run(["pkill", "-KILL", "-U", str(uid)], check=False)
            wait_until(f"processes of {user} are left",
                       lambda: subprocess.run(["pgrep", "-U", str(uid)], check=False,
                                              capture_output=True).returncode != 0, PATIENCE)
            subprocess.run(["userdel", "--remove", user], check=False, capture_output=True)
        shutil.rmtree(FOLDER, ignore_errors=True)

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

    def write_config(self, **changed: str) -> None:
        settings = {"agent": AGENT, "node": "n0", "state": self.state, "program": self.program,
                    "key": FOLDER / "controller.pub", "used": self.used, "log": self.log,
                    "group": "trainyard-test", "devices": FOLDER / "gpu", "processes": "200"}
        settings.update(changed)
        self.config.write_text("# of a test\n" + "".join(f"{name} {value}\n"
                                                        for name, value in settings.items()))
        self.config.chmod(0o644)

    def start_controller(self) -> None:
        cluster = FOLDER / "cluster.toml"
        cluster.write_text('[[nodes]]\nname = "n"\ngpus = 3\n')
        self.start("controller", AGENT, "--cluster", cluster, "--state", FOLDER / "controller",
                   "--listen", f"127.0.0.1:{self.port}", "--users", "all")

    def start_agent(self) -> None:
        self.start("agent", AGENT, "--controller", f"127.0.0.1:{self.port}", "--node", "n0",
                   "--gpus", "3", "--state", self.state, "--launcher", self.launcher)

    def start(self, command: str, user: str, *options: object) -> None:
        entry = pwd.getpwnam(user)
        output = (FOLDER / f"{command}.log").open("ab")
        self.processes[command] = subprocess.Popen(
            [self.program, command, *map(str, options)], user=entry.pw_uid, group=entry.pw_gid,
            extra_groups=[], stdout=output, stderr=output, cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": entry.pw_dir, "SMUGGLED": "by the agent"})

    def kill(self, command: str) -> None:
        self.processes[command].kill()
        self.processes.pop(command).wait()

    # ------------------------------------------------------------------------------------- calls

    def ask(self, user: str, *words: object, port: int = 0,
            service: str = AGENT) -> subprocess.CompletedProcess:
        """A command of a client, as that user."""
        entry = pwd.getpwnam(user)
        return run_as(user, [self.program, *words], cwd="/", env={
            "PATH": "/usr/bin:/bin", "HOME": entry.pw_dir, "USER": user,
            "TRAINYARD_CONTROLLER": f"127.0.0.1:{port or self.port}",
            "TRAINYARD_CONTROLLER_USER": service})

    def submit(self, user: str, command: list, *options: object) -> int:
        answer = self.ask(user, "submit", "--gpus", "1", "--max-restarts", "0", *options, "--", *command)
        expect(answer.returncode == 0, f"submit: {answer.stderr.decode()}")
        return int(re.search(r"\d+", answer.stdout.decode()).group())

    def status(self, user: str, job: int) -> str:
        return self.ask(user, "status", str(job), "--json").stdout.decode()

    def reason(self, user: str, job: int) -> str:
        found = json.loads(self.status(user, job))["jobs"][0]
        return f"{found['state']}, {found['reason']} {found['note']}"

    def wait_for(self, user: str, job: int, *states: str) -> str:
        end = time.monotonic() + PATIENCE
        while not any(f'"state": "{state}"' in self.status(user, job) for state in states):
            expect(time.monotonic() < end, f"job {job} is not {states}: {self.status(user, job)}"
                   f"\n{self.logs(user, job)}")
            time.sleep(0.1)
        return self.status(user, job)

    def logs(self, user: str, job: int) -> str:
        return self.ask(user, "logs", str(job)).stdout.decode()

    def logged(self, by: str) -> str:
        path = FOLDER / f"{by}.log"
        return path.read_text() if path.exists() else ""
