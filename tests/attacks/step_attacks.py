# SPDX-License-Identifier: Apache-2.0
"""Steps on two nodes, attacked by another user of the machine, who may talk to all ports, with what someone on
the network has recorded, and with the secret of an earlier attempt. The cluster is anna's own `up`."""

import contextlib
import hashlib
import hmac
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from attach_attacks import field
from expectations import expect, wait_until
from launcher_attacks import Attack
from stage import ANNA, BEN, PATIENCE, Stage, free_port, run_as

# It runs a step for each file go-N, until there is `over`.
SCRIPT = """#!/bin/bash
#SBATCH -N2 --ntasks-per-node=1 --gpus-per-node=1 --open-mode=append -o out.txt
i=0
while ! [ -e over ]; do
  if [ -e go-$i ]; then
    srun -l sh -c "echo step $i on \\$SLURMD_NODENAME"
    echo step $i: $?
    i=$((i + 1))
  fi
  sleep 0.05
done
"""

# As ben: connects to a port N times, sends what it is given to each connection, and prints what comes back.
CONNECT = """
import resource, socket, sys, time
address, port, times, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
text = sys.stdin.buffer.read()
kept = [socket.create_connection((address, port), timeout=patience) for _ in range(times)]
heard = b""
for speaker in kept:
    try:
        speaker.sendall(text)
        while times == 1:
            more = speaker.recv(65536)
            heard += more
            if not more:
                print("closed", end=" ")
                break
    except TimeoutError:
        print("open", end=" ")
    except OSError:
        print("closed", end=" ")
print(heard.hex(), flush=True)
if times > 1:
    time.sleep(patience)
"""

# As ben: listens in the place of srun, sends what it is given to who calls, and prints what becomes of it.
LISTEN = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
listener.settimeout(60)
print("listens", flush=True)
caller, _ = listener.accept()
caller.settimeout(30)
caller.sendall(sys.stdin.buffer.read())
heard = b""
try:
    while more := caller.recv(65536):
        heard += more
    print("closed", heard.hex())
except OSError:
    print("closed", heard.hex())
except TimeoutError:
    print("open", heard.hex())
"""


def frame(message: bytes) -> bytes:
    return struct.pack("I", len(message)) + message


def fields_of(message: bytes) -> dict[int, list]:
    """Of a Protobuf message, by number."""
    found: dict[int, list] = {}
    place = 0

    def take() -> int:
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(message):
        key = take()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            found.setdefault(key >> 3, []).append(take())
            continue
        length = size or take()
        found.setdefault(key >> 3, []).append(message[place:place + length])
        place += length
    return found


def mac_of(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()


def told(text: bytes) -> bytes:
    return str(len(text)).encode() + b":" + text


class Attempt:
    """What its processes know, from the file of its start."""

    def __init__(self, path: Path) -> None:
        start = fields_of(path.read_bytes())
        ident = fields_of(start[1][0])
        self.port = start[10][0]
        self.secret = b"%d %d " % (ident[1][0], ident[2][0]) + start[43][0]

    def question(self, node: int, number: int, greeting: bytes) -> bytes:
        """Of a node for its command, in answer to the desk's greeting."""
        nonce = b"of ben"
        desks = fields_of(greeting[4:])[1][0]
        mac = mac_of(self.secret, b"caller %s %s %d %d " % (told(desks), told(nonce), node, number))
        return frame(field(1, nonce) + field(2, mac) + field(3, node) +
                     (field(5, number) if number else b""))


class Recorder:
    """All that is said on the loopback device, by port; as someone on the network would hear it. By `with`."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.1)
        self.said: dict[tuple[int, int], dict[int, bytes]] = {}  # by ports of source and target, and place
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self) -> "Recorder":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.socket.close()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                packet = self.socket.recv(1 << 17)[14:]
            except TimeoutError:
                continue
            if packet[:1] != b"\x45" or packet[9] != socket.IPPROTO_TCP:
                continue
            tcp = packet[20:struct.unpack("!H", packet[2:4])[0]]
            source, target, place = struct.unpack("!HHI", tcp[:8])
            if text := tcp[(tcp[12] >> 4) * 4:]:
                self.said.setdefault((source, target), {})[place] = text

    def to_port(self, port: int) -> list[bytes]:
        """Of each connection what its caller has said."""
        return [b"".join(text for _, text in sorted(parts.items()))
                for (_, target), parts in sorted(self.said.items()) if target == port]


class Victim:
    """Anna's cluster with the job, which is submitted at once."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.port = free_port()
        self.home = Path(pwd.getpwnam(ANNA).pw_dir)
        self.steps = 0
        entry = pwd.getpwnam(ANNA)
        stage.processes["anna's up"] = subprocess.Popen(
            [stage.program, "up", "--nodes", "2", "--gpus", "1", "--listen", f"127.0.0.1:{self.port}",
             "--state", f"{self.home}/steps-up"], user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
            cwd=self.home, env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("anna's cluster answers", lambda: self.ask("nodes").returncode == 0, PATIENCE)
        (self.home / "steps.sh").write_text(SCRIPT)
        (self.home / "steps.sh").chmod(0o755)
        done = run_as(ANNA, [stage.program, "submit", "steps.sh"], cwd=self.home, text=True,
                      env=stage.environment(ANNA, self.port, ANNA))
        expect(done.returncode == 0, f"submit: {done.stderr}")

    def ask(self, *words: object) -> subprocess.CompletedProcess:
        return self.stage.ask(ANNA, *words, port=self.port, service=ANNA)

    def out(self) -> str:
        path = self.home / "out.txt"
        return path.read_text() if path.exists() else ""

    def attempt(self, number: int) -> Attempt:
        found: list[Path] = []

        def is_there() -> bool:
            found[:] = self.home.glob(f"steps-up/**/n*0/attempts/1-{number}/start")
            return bool(found) and found[0].stat().st_size > 0

        wait_until(f"attempt {number} has started", is_there, PATIENCE)
        return Attempt(found[0])

    def process(self, words: str, user: str = ANNA) -> int:
        """The first of that user's whose command line has these words."""
        found = subprocess.run(["pgrep", "-o", "-u", user, "-f", words], check=False, capture_output=True,
                               text=True).stdout
        return int(found or 0)

    def begin_step(self) -> int:
        (self.home / f"go-{self.steps}").touch()
        self.steps += 1
        return self.steps - 1

    def await_step(self, number: int) -> None:
        """It runs on both nodes, once, and ends well."""
        wait_until(f"step {number} ends: {self.out()}", lambda: f"step {number}: " in self.out(), PATIENCE)
        self.check_step(number)

    def check_step(self, number: int, status: int = 0, times: int = 1) -> None:
        out = self.out()
        expect(f"step {number}: {status}\n" in out, f"step {number} has not ended with {status}: {out}")
        for node in (0, 1):
            count = len(re.findall(f"^{node}: step {number} on ", out, re.MULTILINE))
            expect(count == times, f"task {node} of step {number} has run {count} times: {out}")

    def held(self, during: Callable[[int], object]) -> object:
        """What comes of it, given srun's port while the other node has not called; then the step runs."""
        hold = self.process("launch hold")
        os.kill(hold, signal.SIGSTOP)
        try:
            number = self.begin_step()
            wait_until("srun listens", lambda: self.sruns_port() > 0, PATIENCE)
            outcome = during(self.sruns_port())
        finally:
            os.kill(hold, signal.SIGCONT)
        self.await_step(number)
        return outcome

    def sruns_port(self) -> int:
        srun = self.process("srun -l")
        done = subprocess.run(["ss", "-Htlnp"], check=True, capture_output=True, text=True).stdout
        found = re.search(rf":(\d+) .*pid={srun},", done) if srun else None
        return int(found.group(1)) if found else 0

    def end(self) -> str:
        """The job ends well, and nothing is left. Afterwards there is no victim."""
        (self.home / "over").touch()
        done = self.ask("wait", 1)
        up = self.stage.processes.pop("anna's up")
        up.send_signal(signal.SIGINT)
        up.wait()
        if done.returncode != 0:
            return f"exit status 0: {done.stdout}{done.stderr}"
        return "exit status 1: unharmed"


def connect(port: int, text: bytes, times: int = 1, patience: float = 5) -> str:
    done = run_as(BEN, ["/usr/bin/python3", "-c", CONNECT, "127.0.0.1", port, times, patience], cwd="/",
                  input=text)
    return done.stdout.decode() + done.stderr.decode()


def of_greeting(answer: str, port: int) -> str:
    """The other side has said its nonce, at most, and has hung up."""
    heard = bytes.fromhex(answer.split()[-1]) if answer.startswith("closed ") and len(answer.split()) > 1 else b""
    if not answer.startswith("closed") or len(heard) > 80:
        return f"exit status 0: port {port}: {answer}"
    return f"exit status 1: turned away: {len(heard)} bytes of greeting"


def start_of(words: list[str]) -> bytes:
    """A StepMessage that has them run."""
    command = b"".join(field(2, word.encode()) for word in words)
    return field(2, command + field(4, b"PATH=/usr/bin:/bin") + field(5, b"/tmp") + field(5, b"/") +
                 b"\x30\x00" + field(7, 1) + field(9, 1))


@contextlib.contextmanager
def crowd(port: int) -> Iterator[None]:
    """More silent calls of ben's than are kept, all of them made."""
    calls = subprocess.Popen(["/usr/bin/python3", "-c", CONNECT, "127.0.0.1", str(port), "600", "600"],
                             user=pwd.getpwnam(BEN).pw_uid, extra_groups=[], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, cwd="/")
    try:
        expect(calls.stdout.readline() == b"\n", "600 calls are made")
        yield
    finally:
        calls.kill()
        calls.wait()


def all_of(stage: Stage) -> list[Attack]:
    victim = Victim(stage)
    first = victim.attempt(1)
    mark = Path(pwd.getpwnam(BEN).pw_dir) / "done"
    run = start_of(["touch", str(mark)])
    unproved = frame(field(1, b"n" * 32))
    turned_away = ("turned away",)

    def desk(text: bytes) -> str:
        return of_greeting(connect(first.port, text), first.port)

    def forged(secret: bytes, body: bytes) -> bytes:
        """As somebody would who does not know the other side's nonce."""
        return unproved + frame(field(1, body) + field(2, mac_of(secret, b"tasks 0 " + body)))

    def srun(text: bytes) -> str:
        return victim.held(lambda port: of_greeting(connect(port, text), port))

    def logged() -> str:
        logs = [path.read_text() for path in victim.home.glob("steps-up/**/attempts/1-1/supervisor.log")]
        lines = [line for log in logs for line in log.splitlines() if "refused: " in line]
        return f"exit status {1 if lines and len(lines) < 20 else 0}: {lines}"

    def replayed(to_desk: bool) -> str:
        with Recorder() as recorder:
            port = 0

            def note(sruns: int) -> str:
                nonlocal port
                port = sruns
                return ""

            victim.held(note)
        words = recorder.to_port(first.port if to_desk else port)
        expect(bool(words), f"nothing was recorded to port {port}: {list(recorder.said)}")
        if to_desk:
            outcomes = [desk(text) for text in words]
        else:
            outcomes = [srun(text) for text in words]
        return next((outcome for outcome in outcomes if "exit status 0" in outcome), outcomes[0])

    def with_the_secret() -> str:
        """What the others lack: it would be a hole if they had it."""
        with socket.create_connection(("127.0.0.1", first.port), timeout=30) as client:
            client.sendall(first.question(1, 0, client.recv(65536)))
            number = victim.begin_step()
            answer = fields_of(client.recv(65536)[4:])
        victim.await_step(number)
        command = answer.get(4, [b""])[0].decode()
        return f"exit status {1 if command.startswith('step ') else 0}: is told '{command}'"

    def flooded_desk() -> str:
        with crowd(first.port):
            victim.await_step(victim.begin_step())
        return "exit status 1: the step runs"

    def flooded_srun() -> str:
        with contextlib.ExitStack() as until_the_end:
            victim.held(lambda port: until_the_end.enter_context(crowd(port)))
        return "exit status 1: the step runs"

    def in_sruns_place() -> str:
        hold = victim.process("launch hold")
        os.kill(hold, signal.SIGSTOP)
        try:
            number = victim.begin_step()
            wait_until("srun listens", lambda: victim.sruns_port() > 0, PATIENCE)
            port = victim.sruns_port()
            os.kill(victim.process("srun -l"), signal.SIGKILL)
            wait_until("srun is gone", lambda: f"step {number}: 137" in victim.out(), PATIENCE)
            listener = subprocess.Popen(
                ["/usr/bin/python3", "-c", LISTEN, str(port)], user=pwd.getpwnam(BEN).pw_uid, extra_groups=[],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
            expect(listener.stdout.readline() == b"listens\n", "ben cannot listen there")
        finally:
            os.kill(hold, signal.SIGCONT)
        said, errors = listener.communicate(
            unproved + frame(field(1, run) + field(2, mac_of(b"guess", b"srun 0 " + run))), PATIENCE)
        answer = said.decode().strip() or errors.decode()
        if not answer.startswith("closed") or mark.exists():
            return f"exit status 0: {answer}; {mark.exists()}"
        victim.await_step(victim.begin_step())
        return f"exit status 1: turned away: {answer[:20]}"

    def by_earlier_secret() -> str:
        """Of attempt 1, whose port attempt 2 may have."""
        done = victim.ask("requeue", 1)
        expect(done.returncode == 0, f"requeue: {done.stderr}")
        second = victim.attempt(2)
        expect(second.secret != first.secret, "the secret is another one")
        steps = [number for number in range(victim.steps) if (victim.home / f"go-{number}").exists()]
        wait_until("the new attempt runs its steps again",
                   lambda: victim.out().count(f"step {steps[-1]}: ") == 2, PATIENCE)
        with socket.create_connection(("127.0.0.1", second.port), timeout=30) as client:
            client.sendall(first.question(1, 0, client.recv(65536)))
            try:
                answer = client.recv(65536)
            except ConnectionError:
                answer = b""
        return f"exit status 0: {answer!r}" if answer else "exit status 1: turned away"

    return [
        Attack("garbage for the desk of the nodes", turned_away, lambda: desk(b"\xff" * 4000), logged=""),
        Attack("a call without a proof", turned_away, lambda: desk(frame(field(3, 1))), logged=""),
        Attack("a command without a proof", turned_away,
               lambda: desk(frame(field(1, b"n") + field(3, 1) + field(4, b"step 1 1"))), logged=""),
        Attack("a command with a proof of another secret", turned_away,
               lambda: desk(frame(field(1, b"n") + field(2, b"ab" * 32) + field(3, 1) + field(4, b"step 1 1"))),
               logged=""),
        Attack("an oversized call", turned_away, lambda: desk(struct.pack("I", 1 << 30) + b"x" * 70000), logged=""),
        Attack("it is logged, and no flood of it", ("refused: ",), logged, logged=""),
        Attack("garbage for srun", turned_away, lambda: srun(b"\xff" * 4000), logged=""),
        Attack("the place of a node without a proof", turned_away,
               lambda: srun(forged(b"", field(1, field(1, 1) + field(2, 1)))), logged=""),
        Attack("output of a node in its place", turned_away,
               lambda: srun(forged(b"guess", field(6, field(3, b"forged")))), logged=""),
        Attack("an oversized message for srun", turned_away,
               lambda: srun(unproved + struct.pack("I", 1 << 20) + b"x" * 70000), logged=""),
        Attack("silent calls that keep the nodes out of a step", ("the step runs",), flooded_srun, logged=""),
        Attack("silent calls that keep the nodes from the desk", ("the step runs",),
               flooded_desk, logged=""),
        Attack("what a node has said to the desk, once more", turned_away, lambda: replayed(True), logged=""),
        Attack("what a node has said to srun, once more", turned_away, lambda: replayed(False), logged=""),
        Attack("srun's port, when it is gone", turned_away, in_sruns_place, logged=""),
        Attack("by the secret itself the desk can be asked", ("is told 'step ",), with_the_secret, logged=""),
        Attack("the secret of an earlier attempt", turned_away, by_earlier_secret, logged=""),
        Attack("the job after all this", ("unharmed",), victim.end, logged=""),
    ]
