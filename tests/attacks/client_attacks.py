# SPDX-License-Identifier: Apache-2.0
"""What a user asks of the controller about another's jobs, and of another's `up`."""

import os
import pwd
import signal
import socket
import subprocess

import attach_attacks
from expectations import wait_until
from launcher_attacks import Attack
from stage import AGENT, ANNA, BEN, FOLDER, PATIENCE, Stage, free_port, run_as


def answer_of(done: subprocess.CompletedProcess) -> str:
    return f"exit status {done.returncode}: {done.stdout}{done.stderr}"


def in_place_of_the_node(stage: Stage, user: str) -> str:
    """An agent of another user's says that it is the node."""
    home = pwd.getpwnam(user).pw_dir
    try:
        done = run_as(user, ["timeout", "5", stage.program, "agent", "--controller",
                             f"127.0.0.1:{stage.port}", "--node", "n0", "--gpus", "3", "--state",
                             f"{home}/agent"], cwd="/", text=True, env=stage.environment(user))
    except subprocess.TimeoutExpired:
        return "exit status 0: it runs on"
    return answer_of(done)


def raw(stage: Stage, text: bytes) -> str:
    """Bytes that are no call: the controller answers others all the same."""
    with socket.create_connection(("127.0.0.1", stage.port)) as client:
        client.settimeout(5)
        try:
            client.sendall(text)
            client.recv(1 << 16)
        except OSError:
            pass
    return "exit status 1: still there, " + answer_of(stage.ask(ANNA, "nodes"))


def anothers_up(stage: Stage) -> list[Attack]:
    port = free_port()

    def attempt(*words: object) -> str:
        entry = pwd.getpwnam(ANNA)
        up = subprocess.Popen([stage.program, "up", "--nodes", "1", "--gpus", "1", "--listen",
                               f"127.0.0.1:{port}", "--state", f"{entry.pw_dir}/up"],
                              user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/",
                              env={"HOME": entry.pw_dir, "PATH": "/usr/bin:/bin"},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def answers() -> bool:
                done = stage.ask(ANNA, "nodes", port=port)
                return done.returncode == 0

            wait_until("another's cluster answers", answers, PATIENCE)
            return answer_of(stage.ask(BEN, *words, port=port, service=ANNA))
        finally:
            up.send_signal(signal.SIGINT)
            up.wait()

    only = ("serves only",)
    return [
        Attack("submit to another's `up`", only, lambda: attempt("submit", "--gpus", "1", "--",
                                                                 "id"), logged=""),
        Attack("see the jobs of another's `up`", only, lambda: attempt("status"), logged=""),
    ]


def flood(stage: Stage) -> str:
    """So many calls of one user that another's would wait; on a controller of its own, where few are many."""
    port = free_port()
    stage.make_folder(FOLDER / "flooded", AGENT, 0o700)
    stage.start("controller", AGENT, "--cluster", "1x1", "--state", FOLDER / "flooded", "--listen",
                f"127.0.0.1:{port}", "--users", "all", "--user-calls", "0.5", name="flooded")
    wait_until("it answers", lambda: stage.ask(ANNA, "nodes", port=port).returncode == 0, PATIENCE)
    ben = pwd.getpwnam(BEN)
    calls = [subprocess.Popen([stage.program, "status"], user=ben.pw_uid, group=ben.pw_gid, extra_groups=[],
                              cwd="/", env=stage.environment(BEN, port), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) for _ in range(20)]
    try:
        wait_until("he is refused", lambda: f"{BEN} (uid {ben.pw_uid}) makes more" in stage.logged("flooded"),
                   PATIENCE)
        others = [answer_of(stage.ask(user, "nodes", port=port)) for user in (ANNA, AGENT, "root")]
        waiting = sum(call.poll() is None for call in calls)
    finally:
        for call in calls:
            call.kill()
            call.wait()
        stage.kill("flooded")
    if waiting == 0 or not all(other.startswith("exit status 0") for other in others):
        return f"exit status 0: {waiting} calls wait; others are told {others}"
    return f"exit status 1: {waiting} calls wait; {stage.logged('flooded')}"


# Connects until it is refused, and keeps what it has.
CONNECT = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept = []
closed = 0
for _ in range(1400):
    try:
        kept.append(socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10))
    except OSError:
        closed += 1
time.sleep(1)
for connection in kept:
    connection.setblocking(False)
    try:
        closed += connection.recv(1) == b""
    except BlockingIOError:
        pass
    except OSError:
        closed += 1
print(closed)
"""


def connections(stage: Stage, address: str) -> str:
    """So many connections, from its own machine, that nobody else is served; other machines have a limit."""
    port = free_port()
    stage.make_folder(FOLDER / "connected", AGENT, 0o700)
    stage.start("controller", AGENT, "--cluster", "1x1", "--state", FOLDER / "connected", "--listen",
                f"0.0.0.0:{port}", "--users", "all", name="connected")
    try:
        wait_until("it answers", lambda: stage.ask(ANNA, "nodes", port=port).returncode == 0, PATIENCE)
        done = run_as(BEN, ["/usr/bin/python3", "-c", CONNECT, address, port], cwd="/", text=True)
        other = answer_of(stage.ask(ANNA, "nodes", port=port))
    finally:
        stage.kill("connected")
    if done.returncode != 0 or not other.startswith("exit status 0"):
        return f"exit status 0: {answer_of(done)}; another is told {other}"
    return "exit status 1: another is served"


def kept_open(silent: socket.socket) -> str:
    """A connection that says nothing, so as to be one of those that are open."""
    silent.settimeout(PATIENCE)
    try:
        said = silent.recv(1 << 16)
        while said:
            said = silent.recv(1 << 16)
    except TimeoutError:
        return "exit status 0: it is open"
    except OSError:
        pass
    return "exit status 1: it is closed"


def own_address() -> str:
    """Of this machine, but loopback; empty: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return probe.getsockname()[0]
        except OSError:
            return ""


def all_of(stage: Stage) -> list[Attack]:
    job = stage.submit(ANNA, ["/bin/sh", "-c", "echo secret; sleep 3600"])
    stage.wait_for(ANNA, job, "running", "waiting")

    def ask(*words: object, **more: object) -> str:
        return answer_of(stage.ask(BEN, *words, **more))

    silent = socket.create_connection(("127.0.0.1", stage.port))
    another = ("another user's", "may not", "there is no job", "no such job")
    malformed = ("still there, exit status 0",)
    return [
        Attack("cancel another's job", another, lambda: ask("cancel", job), logged="controller"),
        Attack("resize another's job", another, lambda: ask("resize", job, "--gpus", "2"),
               logged="controller"),
        Attack("read another's log by the controller", another, lambda: ask("logs", job),
               logged="controller"),
        Attack("see another's job", another, lambda: ask("status", job), logged=""),
        Attack("submit in another's name", another,
               lambda: ask("submit", "--user", ANNA, "--gpus", "1", "--", "id"),
               logged="controller"),
        Attack("submit as root", another,
               lambda: ask("submit", "--user", "root", "--gpus", "1", "--", "id"),
               logged="controller"),
        Attack("drain a node", another, lambda: ask("drain", "n0"), logged="controller"),
        Attack("join in place of a node", ("does not let this agent in", "refuses"),
               lambda: in_place_of_the_node(stage, BEN), logged=""),
        Attack("bytes that are no call", malformed, lambda: raw(stage, os.urandom(4096)),
               logged=""),
        Attack("an oversized call", malformed,
               lambda: raw(stage, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * (4 << 20)),
               logged=""),
        Attack("the frames of a call, cut off", malformed,
               lambda: raw(stage, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\4\0\0\0\0\0"),
               logged=""),
        Attack("find out by a dependency that another's job is there", ("there is no earlier job",),
               lambda: ask("submit", "--gpus", "1", "--dependency", f"afterok:{job}", "--", "id"), logged=""),
        Attack("a container, which would need a setuid helper", ("no_new_privs",),
               lambda: ask("submit", "--gpus", "1", "--container-image", "debian", "--", "id"), logged=""),
        Attack("a flood of calls", ("makes more than 0.5 calls per second",), lambda: flood(stage),
               logged="flooded"),
        Attack("a connection that says nothing", ("is closed",), lambda: kept_open(silent), logged=""),
        *([Attack("connections without end", ("another is served",),
                  lambda: connections(stage, own_address()), logged="")] if own_address() else []),
        *anothers_up(stage),
        *attach_attacks.all_of(stage, job),
    ]
