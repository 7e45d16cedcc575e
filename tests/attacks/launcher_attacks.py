# SPDX-License-Identifier: Apache-2.0
"""What users, and an agent that has been taken over, try with the launcher."""

import os
import pwd
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stage import AGENT, ANNA, BEN, FOLDER, Stage, run_as, uid_of


@dataclass
class Attack:
    """`attempt` returns what came of it; it must have failed, with one of the reasons in that."""

    name: str
    reasons: tuple[str, ...]
    attempt: Callable[[], str]
    logged: str = "launcher"  # whose log must have it, too; empty: nobody's


@dataclass
class Forge:
    """Credentials as a controller makes them, and others."""

    stage: Stage
    number: int = 1000
    lines: dict = field(default_factory=dict)

    def text(self, **changed: object) -> bytes:
        lines = {"job": self.number, "attempt": 1, "user": ANNA, "uid": uid_of(ANNA), "node": "n0",
                 "gpus": "0", "epoch": 1, "expires": int(time.time()) + 200, "launch": "ab" * 32}
        lines.update(changed)
        return ("trainyard credential 1\n" +
                "".join(f"{name} {value}\n" for name, value in lines.items())).encode()

    def sign(self, text: bytes, key: Path | None = None) -> bytes:
        scratch = FOLDER / "to-sign"
        scratch.write_bytes(text)
        signature = subprocess.run(
            ["openssl", "pkeyutl", "-sign", "-rawin", "-in", str(scratch), "-inkey",
             str(key or self.stage.key)], check=True, capture_output=True).stdout
        return text + b"signature " + signature.hex().encode() + b"\n"

    def folders(self, job: int) -> None:
        """As the agent makes them before it calls the launcher."""
        agent = pwd.getpwnam(AGENT)
        for path in (f"attempts/{job}-1", f"logs/{job}-1", f"checkpoints/{job}"):
            folder = self.stage.state / path
            folder.parent.mkdir(mode=0o755, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            os.chown(folder.parent, agent.pw_uid, agent.pw_gid)
            os.chown(folder, agent.pw_uid, agent.pw_gid)
        for name in ("start", "lock", "spare"):
            file = self.stage.state / f"attempts/{job}-1" / name
            file.write_bytes(b"")
            os.chown(file, agent.pw_uid, agent.pw_gid)

    def call(self, credential: bytes | None = None, words: tuple = (), user: str = AGENT,
             **more: object) -> str:
        """The launcher's answer. Each call is about another job, unless `words` says which."""
        words = words or ("start", f"{self.number}-1", "0", "0")
        done = run_as(user, [self.stage.launcher, *words], input=credential or b"",
                      **{"cwd": "/", "env": {}, **more})
        self.number += 1
        return f"exit status {done.returncode}: {done.stderr.decode()}"

    def start(self, sign_with: Path | None = None, **changed: object) -> str:
        self.folders(self.number)
        return self.call(self.sign(self.text(**changed), sign_with))


def with_changed(path: Path, change: Callable[[Path], None], attempt: Callable[[], str]) -> str:
    """The attempt while the file or folder is changed."""
    status = path.lstat()
    content = path.read_bytes() if path.is_file() else None
    change(path)
    try:
        return attempt()
    finally:
        if path.is_symlink():
            path.unlink()
        if content is not None and (not path.exists() or path.read_bytes() != content):
            path.write_bytes(content)
        os.chown(path, status.st_uid, status.st_gid)
        path.chmod(status.st_mode & 0o7777)


def make_link(path: Path) -> None:
    away = path.with_name(path.name + ".away")
    shutil.copy(path, away)
    path.unlink()
    path.symlink_to(away)


def credentials(forge: Forge) -> list[Attack]:
    other_key = FOLDER / "other.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(other_key)],
                   check=True, capture_output=True)
    rsa_key = FOLDER / "rsa.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "rsa", "-out", str(rsa_key)], check=True,
                   capture_output=True)

    def altered(old: str, new: str) -> str:
        credential = forge.sign(forge.text())
        return forge.call(credential.replace(old.encode(), new.encode()))

    def replayed() -> str:
        forge.folders(forge.number)
        credential = forge.sign(forge.text())
        words = ("start", f"{forge.number}-1", "0", "0")
        forge.call(credential, words)
        return forge.call(credential, words)

    def replayed_for_another() -> str:
        return forge.call(forge.sign(forge.text(job=forge.number - 1)))

    not_signed = ("the signature is not that of this cluster's controller",)
    malformed = ("no credential",)
    now = int(time.time())
    anna = str(uid_of(ANNA))
    return [
        Attack("start without a credential", malformed, lambda: forge.call(b"")),
        Attack("a forged credential, signed by another key", not_signed,
               lambda: forge.start(other_key)),
        Attack("a credential with another uid", not_signed,
               lambda: altered(f"uid {anna}", f"uid {uid_of(BEN)}")),
        Attack("a credential with another user", not_signed,
               lambda: altered(f"user {ANNA}", f"user {BEN}")),
        Attack("a credential with more GPUs", not_signed, lambda: altered("gpus 0", "gpus 0,1")),
        Attack("a credential with another command", not_signed,
               lambda: altered("launch ab", "launch ac")),
        Attack("a credential that lasts longer", not_signed,
               lambda: altered("expires ", "expires 9")),
        Attack("a signature of zeros", not_signed,
               lambda: forge.call(forge.text() + b"signature " + b"00" * 64 + b"\n")),
        Attack("a replayed credential", ("the credential has been used",), replayed),
        Attack("a credential of another job", ("the credential is for",), replayed_for_another),
        Attack("an expired credential", ("has expired",),
               lambda: forge.start(expires=now - 1)),
        Attack("a credential that hardly ever expires", ("valid for too long",),
               lambda: forge.start(expires=now + 10**7)),
        Attack("a credential of another node", ("is for node n2",),
               lambda: forge.start(node="n2")),
        Attack("a credential of a stale epoch", ("a controller of epoch",),
               lambda: forge.start(epoch=0)),
        Attack("an oversized credential", malformed, lambda: forge.call(b"x" * (1 << 20))),
        Attack("a credential of zero bytes", malformed, lambda: forge.call(b"\0" * 4000)),
        Attack("two credentials in one", malformed,
               lambda: forge.call(forge.sign(forge.text()) * 2)),
        Attack("a credential with a second uid", malformed,
               lambda: forge.start(launch="ab\nuid 0")),
        Attack("a credential with a number that overflows", malformed,
               lambda: forge.start(uid=2**32)),
    ]


def users(forge: Forge) -> list[Attack]:
    def in_agents_group() -> str:
        subprocess.run(["usermod", "-aG", AGENT, BEN], check=True, capture_output=True)
        try:
            return forge.start(user=BEN, uid=uid_of(BEN))
        finally:
            subprocess.run(["gpasswd", "-d", BEN, AGENT], check=True, capture_output=True)

    return [
        Attack("start as root", ("is root",), lambda: forge.start(user="root", uid=0)),
        Attack("start as a user of uid 0 in the credential only", ("has uid",),
               lambda: forge.start(uid=0)),
        Attack("start as a user whom the node does not know", ("is not known on this node",),
               lambda: forge.start(user="nobody-knows", uid=4711)),
        Attack("start as a user of the system's", ("is a user of the system's",),
               lambda: forge.start(user="daemon", uid=1)),
        Attack("start as nobody", ("is a user of the system's",),
               lambda: forge.start(user="nobody", uid=65534)),
        Attack("start as the agent itself", ("is a user of the system's",),
               lambda: forge.start(user=AGENT, uid=uid_of(AGENT))),
        Attack("start as a user of the agent's group", ("is in the agent's group",),
               in_agents_group),
        Attack("start as a user with another uid on this node", ("has uid",),
               lambda: forge.start(uid=uid_of(BEN))),
    ]


def callers(forge: Forge, stage: Stage) -> list[Attack]:
    def run(user: str, program: Path, **more: object) -> str:
        try:
            done = run_as(user, [program, "end", "1-1"], cwd="/", env={}, **more)
        except PermissionError as error:
            return f"exit status 126: {error}"
        return f"exit status {done.returncode}: {done.stderr.decode()}"

    def copied() -> str:
        copy = Path(pwd.getpwnam(BEN).pw_dir) / "launcher"
        shutil.copy(stage.launcher, copy)
        copy.chmod(0o755)
        return run(BEN, copy)

    def in_group() -> str:
        return run(BEN, stage.launcher, groups=[pwd.getpwnam(AGENT).pw_gid])

    def call(*words: str) -> str:
        return forge.call(b"", words)

    no_attempt = ("is no attempt", "is no number")
    return [
        Attack("a user executes the launcher", ("Permission denied",),
               lambda: run(BEN, stage.launcher), logged=""),
        Attack("a user executes a copy of the launcher", ("does not belong to root",), copied,
               logged=""),
        Attack("a user in the agent's group executes the launcher", ("is not the agent's",),
               in_group),
        Attack("no call at all", ("no call", "expected a call"), lambda: call("start")),
        Attack("an unknown call", ("there is no such call",), lambda: call("shell", "1-1")),
        Attack("an attempt that leaves the folder", no_attempt,
               lambda: call("end", "../../etc-1")),
        Attack("an attempt that ends in a path", no_attempt, lambda: call("clear", "1-1/../../x")),
        Attack("an attempt with a second spelling", no_attempt, lambda: call("log", "01-1", "0")),
        Attack("a negative attempt", no_attempt, lambda: call("end", "-1--1")),
        Attack("an attempt with a line break, to forge the log", no_attempt,
               lambda: call("end", "1-1\n0 uid 0: start 1-1: started as root")),
        Attack("a rank that is a path", ("is no number",), lambda: call("log", "1-1", "0/../x")),
        Attack("limits below zero", ("is no number",), lambda: call("limit", "1-1", "-1", "0")),
        Attack("more words than a call has", ("expected a call",),
               lambda: call("start", "1-1", "0", "0", "--shell")),
    ]


def surroundings(forge: Forge, stage: Stage) -> list[Attack]:
    agent = pwd.getpwnam(AGENT)

    def closed_descriptors() -> str:
        code = ("import os, sys\n"
                "os.close(0); os.close(1)\n"
                "os.execv(sys.argv[1], [sys.argv[1], 'start', '1-1', '0', '0'])\n")
        done = run_as(AGENT, ["/usr/bin/python3", "-c", code, stage.launcher], cwd="/", env={})
        return f"exit status {done.returncode}: {done.stderr.decode()}"

    def with_environment() -> str:
        library = FOLDER / "smuggled.so"
        source = FOLDER / "smuggled.c"
        mark = FOLDER / "agent/smuggled"
        source.write_text('#include <stdio.h>\n__attribute__((constructor)) void run(void) '
                          f'{{ FILE* f = fopen("{mark}", "w"); if (f) fclose(f); }}\n')
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        answer = forge.call(b"", env={
            "LD_PRELOAD": str(library), "LD_LIBRARY_PATH": str(FOLDER), "LD_AUDIT": str(library),
            "OPENSSL_CONF": str(library), "OPENSSL_MODULES": str(FOLDER), "GCONV_PATH": str(FOLDER),
            "TRAINYARD_LAUNCHER_CONFIG": "/tmp/mine", "PATH": "/tmp"})
        return "exit status 0: the library ran" if mark.exists() else answer

    def small_limits() -> str:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))

        forge.folders(forge.number)
        credential = forge.sign(forge.text())
        words = ("start", f"{forge.number}-1", "0", "0")
        forge.call(credential, words, preexec_fn=limit)
        return forge.call(credential, words)  # it has been noted as used all the same

    def changed(path: Path, change: Callable[[Path], None]) -> Callable[[], str]:
        return lambda: with_changed(path, change, forge.start)

    def give_to_agent(path: Path) -> None:
        os.chown(path, agent.pw_uid, agent.pw_gid)

    not_trusted = ("is not root's alone to write",)
    return [
        Attack("libraries and settings in the environment", ("no credential",), with_environment),
        Attack("no open stdin and stdout", ("no credential",), closed_descriptors),
        Attack("limits that would end the launcher half way", ("has been used",), small_limits),
        Attack("settings that others may write", not_trusted,
               changed(stage.config, lambda path: path.chmod(0o646)), logged=""),
        Attack("settings that belong to the agent", not_trusted,
               changed(stage.config, give_to_agent), logged=""),
        Attack("settings behind a link", not_trusted, changed(stage.config, make_link),
               logged=""),
        Attack("a controller's key that belongs to the agent", not_trusted,
               changed(FOLDER / "controller.pub", give_to_agent)),
        Attack("a controller's key that its group may write", not_trusted,
               changed(FOLDER / "controller.pub", lambda path: path.chmod(0o664))),
        Attack("a controller's key that is none", ("the signature is not",),
               changed(FOLDER / "controller.pub", lambda path: path.write_text("key\n"))),
        Attack("a program that the agent may replace", not_trusted,
               changed(stage.program.parent, give_to_agent)),
        Attack("a program that others may write", not_trusted,
               changed(stage.program, lambda path: path.chmod(0o757))),
        Attack("a folder of used credentials that the agent may empty", not_trusted,
               changed(stage.used, give_to_agent)),
    ]


def folders(forge: Forge, stage: Stage) -> list[Attack]:
    """A taken-over agent prepares what the launcher is to hand over."""
    def prepared(prepare: Callable[[int], None]) -> Callable[[], str]:
        def attempt() -> str:
            job = forge.number
            forge.folders(job)
            prepare(job)
            return forge.call(forge.sign(forge.text()))

        return attempt

    def link(path: str, target: str) -> Callable[[int], None]:
        def prepare(job: int) -> None:
            place = stage.state / path.format(job=job)
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()
            place.symlink_to(target)

        return prepare

    def hard_link(job: int) -> None:
        place = stage.state / f"attempts/{job}-1/start"
        place.unlink()
        os.link(FOLDER / "secret", place)

    def second_name(job: int) -> None:
        os.link(stage.state / f"attempts/{job}-1/start", stage.state / f"attempts/{job}-1/other")

    def of_another(job: int) -> None:
        os.chown(stage.state / f"checkpoints/{job}", uid_of(BEN), pwd.getpwnam(BEN).pw_gid)

    def fifo(job: int) -> None:
        place = stage.state / f"attempts/{job}-1/start"
        place.unlink()
        os.mkfifo(place)
        os.chown(place, uid_of(AGENT), pwd.getpwnam(AGENT).pw_gid)

    (FOLDER / "secret").write_text("of root\n")
    (FOLDER / "secret").chmod(0o600)
    links = ("Too many levels of symbolic links", "Not a directory")
    return [
        Attack("an attempt's folder that is a link to /etc", links,
               prepared(link("attempts/{job}-1", "/etc"))),
        Attack("a log folder that is a link to /root", links,
               prepared(link("logs/{job}-1", "/root"))),
        Attack("a checkpoint folder that is a link to another's home", links,
               prepared(link("checkpoints/{job}", pwd.getpwnam(BEN).pw_dir))),
        Attack("a start that is a link to a file of root's", links,
               prepared(link("attempts/{job}-1/start", str(FOLDER / "secret")))),
        Attack("a start that is a hard link to a file of root's", ("expected the agent's",),
               prepared(hard_link)),
        Attack("a start that has a second name", ("is no plain file of its own",),
               prepared(second_name)),
        Attack("a start that is a named pipe", ("is no plain file of its own",), prepared(fifo)),
        Attack("the checkpoints of another user", ("expected the agent's",),
               prepared(of_another)),
    ]


def all_of(stage: Stage) -> list[Attack]:
    forge = Forge(stage)
    return [*credentials(forge), *users(forge), *callers(forge, stage),
            *surroundings(forge, stage), *folders(forge, stage)]
