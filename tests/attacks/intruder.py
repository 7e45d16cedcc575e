# SPDX-License-Identifier: Apache-2.0
"""What a job of one user tries against a job of another, against its node and its limits.

Reads a JSON object of targets from its only argument; writes a line "NAME|shut|REASON" or
"NAME|OPEN|WHAT" for each attempt.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time


def connect(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    return "connected"


def signal_to(pid: int) -> str:
    os.kill(pid, signal.SIGKILL)
    return "sent"


def trace(pid: int) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    attach = 16
    if libc.ptrace(attach, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "attached"


def read(path: str) -> str:
    with open(path, "rb") as file:
        return repr(file.read(64))


def write(path: str, text: str = "0") -> str:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return "written"


def listing(path: str) -> str:
    return str(os.listdir(path))


def replace(folder: str) -> str:
    os.rename(folder, folder + ".away")
    return "renamed"


def link_to(target: str, name: str) -> str:
    """A link in one's own folder opens nothing that was shut."""
    link = os.path.join(os.environ["TRAINYARD_CHECKPOINT_DIR"], name)
    os.symlink(target, link)
    return read(link)


def hard_link(target: str) -> str:
    os.link(target, os.path.join(os.environ["TRAINYARD_CHECKPOINT_DIR"], "hard"))
    return "linked"


def make_node(major: int, minor: int) -> str:
    path = os.path.join(os.environ["TRAINYARD_CHECKPOINT_DIR"], "node")
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    return "made"


def gain_rights(program: str) -> str:
    """A setuid program of root's, which anybody may execute."""
    uid = subprocess.run([program, "-u"], capture_output=True, check=True).stdout.decode().strip()
    if uid == str(os.getuid()):
        raise PermissionError(errno.EPERM, "no_new_privs: it runs as its caller")
    return "uid " + uid


def own_groups(agent_gid: int) -> str:
    groups = {*os.getgroups(), os.getgid()}
    if agent_gid in groups or 0 in groups:
        return str(groups)
    raise PermissionError(errno.EPERM, f"in groups {sorted(groups)} only")


def smuggled() -> str:
    found = [name for name in os.environ if name in ("SMUGGLED", "LD_PRELOAD", "OPENSSL_CONF")]
    if not found:
        raise PermissionError(errno.EPERM, "the environment was cleared")
    return str(found)


def descriptors() -> str:
    """What the launcher or the agent may have left open."""
    found = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
             if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")]
    found = [path for path in found if not path.startswith("/proc/")]
    if not found:
        raise PermissionError(errno.EPERM, "none is open")
    return str(found)


def run_launcher(program: str) -> str:
    done = subprocess.run([program, "end", "1-1"], capture_output=True, check=False)
    return f"exit status {done.returncode}"


def become(uid: int) -> str:
    os.setuid(uid)
    return "become"


def leave_group(root: str) -> str:
    for mount in os.listdir(root):
        write(f"{root}/{mount}/cgroup.procs", str(os.getpid()))
    return "left"


def capabilities() -> str:
    with open("/proc/self/status", encoding="ascii") as file:
        held = [line.split() for line in file if line.startswith(("CapEff", "CapPrm", "CapAmb"))]
    if all(int(words[1], 16) == 0 for words in held):
        raise PermissionError(errno.EPERM, "none is held")
    return str(held)


def forks(most: int) -> str:
    signal.alarm(0)  # it waits for nothing; so many processes take long on a busy machine
    children = []
    try:
        while len(children) < most:
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"{most} processes"


def no_longer(*_: object) -> None:
    raise PermissionError(errno.EPERM, "nothing came of it in 10 s")


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        targets = json.load(file)
    attempts = targets["attempts"]
    signal.signal(signal.SIGALRM, no_longer)
    calls = {call.__name__: call for call in (
        connect, signal_to, trace, read, write, listing, replace, link_to, hard_link, make_node,
        gain_rights, own_groups, smuggled, descriptors, run_launcher, become, leave_group,
        capabilities, forks)}
    for name, call, *arguments in attempts:
        signal.alarm(10)  # whatever waits for something has not got in
        try:
            print(f"{name}|OPEN|{calls[call](*arguments)}", flush=True)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{name}|shut|{error}", flush=True)


main()
