# SPDX-License-Identifier: Apache-2.0
"""What a job tries against another user's job, its node and its own limits."""

import json
import os
import pwd
import re
import shutil
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

from expectations import expect, wait_until
from launcher_attacks import Attack, Forge
from stage import AGENT, ANNA, BEN, ENDED, FOLDER, GPU_DEVICES, PATIENCE, Stage, run_as, uid_of

DENIED = ("Permission denied", "Operation not permitted")
PYTHON = "/usr/bin/python3"

# Anna's job holds a secret in each place where a job may have one.
VICTIM = """
import os, time
folder = os.environ["TRAINYARD_CHECKPOINT_DIR"]
open(folder + "/model", "w").write("secret of anna")
print("secret of anna", flush=True)
open(folder + "/pid", "w").write(str(os.getpid()))
time.sleep(3600)
"""

# A process that has left its session, its parent and its output behind.
SPAWN_DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        time.sleep(3600)
    os._exit(0)
os.wait()
"""

# The attempt says that it has ended, while it goes on.
LIE = SPAWN_DAEMON + """
import signal, socket
folder = os.environ["TRAINYARD_ATTEMPT_FOLDER"]
job, attempt = (int(part) for part in os.path.basename(folder).split("-"))
def number(value):
    text = b""
    while value > 127:
        text += bytes([value % 128 + 128])
        value //= 128
    return text + bytes([value])
ident = b"\\x08" + number(job) + b"\\x10" + number(attempt)
open(folder + "/report", "wb").write(b"\\x0a" + number(len(ident)) + ident + b"\\x10\\x03")
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(3600)
"""

# Its files become links to what only the agent may read or write, and its supervisor goes.
TRAP = """
import os, signal, time
folder = os.environ["TRAINYARD_ATTEMPT_FOLDER"]
for name in ("report", "report.tmp", "supervisor.log", "pgid", "start", "lock"):
    if os.path.lexists(folder + "/" + name):
        os.unlink(folder + "/" + name)
    os.symlink("%s", folder + "/" + name)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(3600)
"""

KILL_SUPERVISOR = """
import os, signal
os.kill(os.getppid(), signal.SIGKILL)
"""

HANG = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getppid(), signal.SIGSTOP)
time.sleep(3600)
"""

TAKE_MEMORY = """
import os, time
time.sleep(3)
if os.fork() == 0:
    taken = b"x" * (512 << 20)
    os._exit(0)
os.wait()
time.sleep(3600)
"""


# A step that hands on a secret, and says at its end that nothing has come of it all.
STEP = """#!/bin/bash
#SBATCH --gpus=0 -o step.txt
srun sh -c 'echo $$ >step-pid; echo secret of anna; until [ -e step-over ]; do sleep 0.1; done; echo unharmed'
"""


def start_step(stage: Stage) -> tuple[int, list[int]]:
    """Anna's job; its task, the process that started it, and srun."""
    home = Path(pwd.getpwnam(ANNA).pw_dir)
    (home / "step.sh").write_text(STEP)
    done = run_as(ANNA, [stage.program, "submit", "step.sh"], cwd=home, text=True, env=stage.environment(ANNA))
    expect(done.returncode == 0, f"submit step.sh: {done.stderr}")
    pid = home / "step-pid"
    wait_until("the step runs", lambda: pid.exists() and pid.read_text() != "", PATIENCE)
    pids = [int(pid.read_text())]
    for _ in range(2):
        status = Path(f"/proc/{pids[-1]}/status").read_text()
        pids.append(int(status.split("PPid:")[1].split()[0]))
    return int(re.search(r"\d+", done.stdout).group()), pids


def end_step(stage: Stage, job: int) -> str:
    home = Path(pwd.getpwnam(ANNA).pw_dir)
    (home / "step-over").touch()
    state = stage.wait_for(ANNA, job, *ENDED)["state"]
    said = (home / "step.txt").read_text()
    unharmed = state == "completed" and said == "secret of anna\nunharmed\n"
    return f"exit status {1 if unharmed else 0}: {state}: {said}"


def processes_of(user: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid_of(user):
                found.append(int(entry.name))
        except FileNotFoundError:
            pass
    return found


def limits_of(group: str, job: int) -> tuple[int, int] | None:
    """Of its first attempt, as the kernel has them: bytes of memory, and microseconds of CPU time in 100 ms."""
    root, name = Path("/sys/fs/cgroup"), f"{group}/{job}-1"
    try:
        if (root / "cgroup.controllers").exists():
            return (int((root / name / "memory.max").read_text()),
                    int((root / name / "cpu.max").read_text().split()[0]))
        return (int((root / "memory" / name / "memory.limit_in_bytes").read_text()),
                int((root / "cpu" / name / "cpu.cfs_quota_us").read_text()))
    except (FileNotFoundError, ValueError):
        return None


def attempts_of_a_job(stage: Stage) -> list[Attack]:
    """All that intruder.py tries; it runs once, as a job beside the victim's."""
    victim = stage.submit(ANNA, [PYTHON, "-c", VICTIM], "--max-restarts", "0", "--env", "TOKEN=secret of anna")
    stage.wait_for(ANNA, victim, "running")
    pid_file = stage.state / f"checkpoints/{victim}/pid"
    wait_until("the victim runs", lambda: pid_file.exists() and pid_file.read_text() != "", PATIENCE)
    pid = int(pid_file.read_text())
    supervisor = int((stage.state / f"attempts/{victim}-1/pgid").read_text().split()[2])
    folder = stage.state / f"attempts/{victim}-1"
    job, (task, tasks, srun) = start_step(stage)
    step = stage.state / f"attempts/{job}-1"
    setuid_id = FOLDER / "bin/id"
    shutil.copy("/usr/bin/id", setuid_id)
    setuid_id.chmod(0o4755)
    group = f"/sys/fs/cgroup/memory/trainyard-test/{victim}-1"
    major, minor = GPU_DEVICES[0]
    tried = [
        ("read another's log", "read", f"{stage.state}/logs/{victim}-1/rank-0.log"),
        ("list another's logs", "listing", f"{stage.state}/logs/{victim}-1"),
        ("read another's checkpoint", "read", f"{stage.state}/checkpoints/{victim}/model"),
        ("write into another's checkpoints", "write", f"{stage.state}/checkpoints/{victim}/x"),
        ("read another's command and environment", "read", f"{folder}/start"),
        ("read the agent's copy of them", "read", f"{folder}.start"),
        ("list another's attempt", "listing", str(folder)),
        ("list the attempts of all", "listing", f"{stage.state}/attempts"),
        ("report for another's attempt", "write", f"{folder}/report"),
        ("move another's attempt away", "replace", str(folder)),
        ("speak to another's supervisor", "connect", f"{folder}/control.sock"),
        ("speak for another's worker", "connect", f"{folder}/job.sock"),
        ("a link to another's checkpoint among one's own", "link_to",
         f"{stage.state}/checkpoints/{victim}/model", "link"),
        ("a link to the password file", "link_to", "/etc/shadow", "shadow"),
        ("a hard link to the password file", "hard_link", "/etc/shadow"),
        ("kill another's worker", "signal_to", pid),
        ("kill another's supervisor", "signal_to", supervisor),
        ("kill the agent", "signal_to", stage.processes["agent"].pid),
        ("trace another's worker", "trace", pid),
        ("read another's environment", "read", f"/proc/{pid}/environ"),
        ("read another's memory", "read", f"/proc/{pid}/mem"),
        ("another's open files", "listing", f"/proc/{pid}/fd"),
        ("another's working folder", "listing", f"/proc/{pid}/cwd"),
        ("open another's GPU", "read", f"{FOLDER}/gpu0"),
        ("write to another's GPU", "write", f"{FOLDER}/gpu0"),
        ("make a node of another's GPU", "make_node", major, minor),
        ("kill a task of another's step", "signal_to", task),
        ("kill what has started it", "signal_to", tasks),
        ("kill another's srun", "signal_to", srun),
        ("trace another's srun", "trace", srun),
        ("read what a task of another's prints", "read", f"/proc/{task}/fd/1"),
        ("speak in place of another's task", "write", f"/proc/{task}/fd/1", "forged"),
        ("claim another's CPUs for a step of one's own", "write", f"{step}/step-claims"),
        ("count another's steps", "write", f"{step}/steps"),
        ("read another's script", "read", f"{step}/script"),
        ("srun in another's attempt", "read", f"{step}/start"),
        ("lift the limit of memory", "write", f"{group}/memory.limit_in_bytes", "-1"),
        ("leave the control group", "leave_group", "/sys/fs/cgroup"),
        ("write the lease of the node", "write", f"{stage.state}/lease"),
        ("replace the lease of the node", "write", f"{stage.state}/lease.new"),
        ("read the agent's state", "listing", str(stage.state)),
        ("read the controller's database", "read", f"{FOLDER}/controller/controller.db"),
        ("read the key of credentials", "read", str(stage.key)),
        ("list used credentials", "listing", str(stage.used)),
        ("write the launcher's log", "write", str(stage.log)),
        ("read the launcher's log", "read", str(stage.log)),
        ("run the launcher", "run_launcher", str(stage.launcher)),
        ("replace the launcher's settings", "write", str(stage.config)),
        ("gain root's rights by a setuid program", "gain_rights", str(setuid_id)),
        ("become root", "become", 0),
        ("become another user", "become", uid_of(ANNA)),
        ("hold capabilities", "capabilities"),
        ("be in the agent's group", "own_groups", pwd.getpwnam(AGENT).pw_gid),
        ("an environment smuggled in by the agent", "smuggled"),
        ("open files that were left to it", "descriptors"),
        ("more processes than its limit", "forks", 400),
    ]
    plan = FOLDER / "plan.json"
    plan.write_text(json.dumps({"attempts": tried}))
    plan.chmod(0o644)
    shutil.copy(Path(__file__).parent / "intruder.py", FOLDER / "bin/intruder.py")
    (FOLDER / "bin/intruder.py").chmod(0o644)
    outcomes: dict[str, str] = {}

    def outcome(name: str) -> str:
        if not outcomes:
            job = stage.submit(BEN, [PYTHON, "-B", FOLDER / "bin/intruder.py", plan],
                               "--max-restarts", "0")
            stage.wait_for(BEN, job, *ENDED)
            log = stage.logs(BEN, job)
            for line in log.splitlines():
                what, result, reason = (line.split("|", 2) + ["", ""])[:3]
                outcomes[what] = f"exit status {0 if result == 'OPEN' else 1}: {reason}"
            outcomes.setdefault("", log)
        return outcomes.get(name, f"was not tried: {outcomes['']}")

    busy = (*DENIED, "Resource temporarily unavailable", "cleared", "only", "is held", "is open",
            "no_new_privs")
    return [*(Attack(name, busy, lambda name=name: outcome(name), logged="") for name, *_ in tried),
            Attack("the step after all this", ("unharmed",), lambda: end_step(stage, job), logged="")]


def own_job(stage: Stage, forge: Forge) -> list[Attack]:
    """Jobs that would stay, or tell lies of themselves."""

    def nothing_left(job: int) -> str:
        stage.wait_for(BEN, job, *ENDED, "running", "starting")
        time.sleep(2)
        stage.ask(BEN, "cancel", str(job))
        stage.wait_for(BEN, job, *ENDED)
        end = time.monotonic() + PATIENCE
        while processes_of(BEN) and time.monotonic() < end:
            time.sleep(0.1)
        left = processes_of(BEN)
        if left:
            return f"exit status 0: processes {left} run on"
        return f"exit status 1: all processes were killed; {stage.reason(BEN, job)}"

    def run(script: str, *options: str) -> int:
        return stage.submit(BEN, [PYTHON, "-c", script], *(options or ("--max-restarts", "0")))

    def daemon() -> str:
        return nothing_left(run(SPAWN_DAEMON))

    def lie() -> str:
        return nothing_left(run(LIE))

    def trap() -> str:
        secret = stage.state / "secret"
        secret.write_text("the agent's secret\n")
        os.chown(secret, uid_of(AGENT), pwd.getpwnam(AGENT).pw_gid)
        secret.chmod(0o600)
        answer = nothing_left(run(TRAP % secret))
        if "the agent's secret" in answer or secret.read_text() != "the agent's secret\n":
            return f"exit status 0: {answer}"
        return answer

    def hang() -> str:
        job = run(HANG, "--grace", "1", "--max-restarts", "0")
        stage.wait_for(BEN, job, "running", "starting")
        time.sleep(1)
        stage.ask(BEN, "cancel", str(job))
        return nothing_left(job)

    def memory() -> str:
        """One of 20 jobs on two nodes uses more than it asked for; the others keep to it and end well."""
        limits = ("--gpus", "0", "--memory", "128M", "--max-restarts", "0")
        groups = {"n0": stage.group, "n1": f"{stage.group}-n1"}

        def one(node: str, command: list, cpus: str) -> tuple[int, str]:
            return stage.submit(BEN, command, *limits, "--cpus", cpus, "--node-list", node), node

        def limits_are_set(job: int, node: str, milli_cpus: int) -> bool:
            period = 100_000
            return limits_of(groups[node], job) == (128 << 20, milli_cpus * period // 1000)

        with stage.second_node():
            modest = [one(f"n{i % 2}", ["sleep", "15"], "0.05") for i in range(19)]
            for other, _ in modest:
                stage.wait_for(BEN, other, "running", *ENDED)
            job, node = one("n1", [PYTHON, "-c", TAKE_MEMORY], "0.5")
            wait_until("its limits are set", lambda: limits_are_set(job, node, 500), PATIENCE)
            without = [other for other, node in modest if not limits_are_set(other, node, 50)
                       and stage.job(BEN, other)["state"] == "running"]
            if without:
                return f"exit status 0: jobs {without} run without limits"
            stage.wait_for(BEN, job, *ENDED)
            for other, _ in modest:
                if stage.wait_for(BEN, other, *ENDED)["state"] != "completed":
                    return f"exit status 0: another job has ended, too: {stage.reason(BEN, other)}"
            used = stage.job(BEN, job)["use"]
            if not (100 << 20) < int(used["peak_memory"]) <= (128 << 20) == int(used["memory_given"]):
                return f"exit status 0: its use is told as {used}"
            return nothing_left(job)

    def kill_supervisors() -> str:
        """Three jobs, as three failures of different jobs in a row would get the node drained."""
        jobs = [run(KILL_SUPERVISOR, "--max-restarts", "1000") for _ in range(3)]
        for job in jobs:
            stage.wait_for(BEN, job, *ENDED)
        reasons = "; ".join(stage.reason(BEN, job) for job in jobs)
        nodes = stage.ask(ANNA, "nodes").stdout
        return f"exit status {0 if 'drained' in nodes else 1}: {reasons}; {nodes}"

    killed = ("all processes were killed",)
    return [
        Attack("a process that has left its session stays", killed, daemon, logged=""),
        Attack("a job that says it has ended stays", killed, lie, logged=""),
        Attack("its files are links to the agent's secrets", killed, trap, logged=""),
        Attack("a stopped supervisor keeps its job", killed, hang, logged=""),
        Attack("take a node away by killing one's own supervisors", ("its supervisor has vanished in",),
               kill_supervisors, logged=""),
        Attack("more memory than its limit, in a child", ("out of memory: 0.125 GiB of 0.125 GiB on n1;",), memory,
               logged=""),
    ]


def other_command(stage: Stage, forge: Forge) -> list[Attack]:
    def attempt() -> str:
        job = forge.number
        forge.folders(job)

        def number(value: int) -> bytes:
            return bytes([value]) if value < 128 else (
                bytes([value % 128 + 128]) + number(value // 128))

        ident = b"\x08" + number(job) + b"\x10\x01"
        launch = b"\x0a\x07/bin/id"
        start = stage.state / f"attempts/{job}-1/start"
        start.write_bytes(b"\x0a" + number(len(ident)) + ident + b"\x1a" + number(len(launch)) +
                          launch)
        os.chown(start, uid_of(AGENT), pwd.getpwnam(AGENT).pw_gid)
        answer = forge.call(forge.sign(forge.text()))
        log = stage.state / f"attempts/{job}-1/supervisor.log"
        return answer + (log.read_text() if log.exists() else "")

    return [Attack("the agent puts another command in place of the signed one",
                   ("does not match the signed digest",), attempt, logged="")]


def all_of(stage: Stage) -> list[Attack]:
    forge = Forge(stage, number=5000)
    return [*attempts_of_a_job(stage), *own_job(stage, forge), *other_command(stage, forge)]
