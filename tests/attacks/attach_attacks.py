# SPDX-License-Identifier: Apache-2.0
"""Ways into a running job: by others, by an agent that has been taken over, and out of it again."""

import re
import struct
import subprocess
import sys

from launcher_attacks import Attack, Forge
from stage import AGENT, ANNA, BEN, FOLDER, Stage, run_as

SESSION = "ab" * 16

# As the agent's user: connects to a supervisor, sends a frame, and prints what comes back of text.
SPEAK = """
import re, socket, sys
speaker = socket.socket(socket.AF_UNIX)
speaker.settimeout(10)
speaker.connect(sys.argv[1])
speaker.sendall(sys.stdin.buffer.read())
heard = b""
try:
    while b"job " not in heard:
        more = speaker.recv(65536)
        if not more:
            break
        heard += more
except TimeoutError:
    pass
print("exit status " + ("1: " if b"job " in heard else "0: ") + re.sub(r"[^ -~]", "", heard.decode(errors="replace")))
"""


def number(value: int) -> bytes:
    text = b""
    while value > 127:
        text += bytes([value % 128 + 128])
        value //= 128
    return text + bytes([value])


def field(place: int, value: int | bytes) -> bytes:
    """A field of a Protobuf message."""
    if isinstance(value, int):
        return number(place << 3) + number(value)
    return number(place << 3 | 2) + number(len(value)) + value


def order(job: int, credential: bytes) -> bytes:
    """A SupervisorOrder that opens a session, in its frame."""
    request = field(1, job) + field(5, SESSION.encode()) + field(6, 1) + field(7, b"/usr/bin/id")
    attach = (field(1, 1) + field(3, field(1, job) + field(2, 1)) + field(4, request) +
              field(5, credential))
    message = field(4, attach)
    return struct.pack("I", len(message)) + message


def by_the_agent(stage: Stage, job: int, credential: bytes) -> str:
    stage.wait_for(ANNA, job, "running")
    path = stage.state / f"attempts/{job}-1/control.sock"
    done = run_as(AGENT, [sys.executable, "-c", SPEAK, path], cwd="/", input=order(job, credential))
    return done.stdout.decode() or f"exit status 0: {done.stderr.decode()}"


def attached(stage: Stage, job: int, script: str) -> subprocess.CompletedProcess:
    stage.wait_for(ANNA, job, "running")
    return stage.ask(ANNA, "attach", str(job), "--", "/bin/sh", "-c", script)


def answer_of(done: subprocess.CompletedProcess) -> str:
    return f"exit status {done.returncode}: {done.stdout + done.stderr}"


def outside(stage: Stage, job: int) -> str:
    """That it is somebody else, somewhere else, or could win rights."""
    done = attached(stage, job, "id -un; cat /proc/self/cgroup /proc/self/status")
    said = done.stdout
    held = (said.startswith(ANNA + "\n") and f"/trainyard-test/{job}-1" in said and
            re.search(r"^NoNewPrivs:\s*1$", said, re.MULTILINE))
    return ("exit status 1: held" if held else f"exit status 0: {said}{done.stderr}")


def other_gpus(stage: Stage, job: int) -> str:
    """The devices that stand for GPUs, less those of the job."""
    done = attached(stage, job, "for i in 0 1; do case \",$TRAINYARD_GPUS,\" in *,$i,*) ;; *) "
                    f"head -c 1 {FOLDER}/gpu$i && exit 0;; esac; done; exit 1")
    return answer_of(done)


def all_of(stage: Stage, job: int) -> list[Attack]:
    forge = Forge(stage)
    another = ("may not",)
    unsigned = ("credential", "signed", "signature")
    return [
        Attack("attach to another's job", another,
               lambda: answer_of(stage.ask(BEN, "attach", str(job), "--", "id")),
               logged="controller"),
        Attack("send another's job a signal", another,
               lambda: answer_of(stage.ask(BEN, "signal", "-s", "USR1", str(job))),
               logged="controller"),
        Attack("an agent opens a session without a credential", unsigned,
               lambda: by_the_agent(stage, job, b""), logged=""),
        Attack("an agent opens a session by its own credential", unsigned,
               lambda: by_the_agent(stage, job, forge.text(job=job) + b"signature " + b"00" * 64 +
                                    b"\n"), logged=""),
        Attack("an agent opens a session by the credential of a start", unsigned,
               lambda: by_the_agent(stage, job, forge.sign(forge.text(job=job))), logged=""),
        Attack("an attached command outside of its job", ("held",), lambda: outside(stage, job),
               logged=""),
        Attack("an attached command opens another's GPU", ("Permission denied",
                                                          "Operation not permitted"),
               lambda: other_gpus(stage, job), logged=""),
    ]
