# SPDX-License-Identifier: Apache-2.0
"""Attempts of users against one another and against the machine, on a real cluster with a launcher.

attacks.py BUILD_FOLDER [--verbose] [--only FAMILY...]; as root: it makes four users, and removes them again.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

import client_attacks  # noqa: E402
import job_attacks  # noqa: E402
import launcher_attacks  # noqa: E402
from machine import has_control_groups  # noqa: E402
import step_attacks  # noqa: E402
import secrets_kept as secrets  # noqa: E402
from secrets_kept import Watch  # noqa: E402
from stage import Stage  # noqa: E402

SKIPPED = 77
FAMILIES = {"launcher": launcher_attacks, "job": job_attacks, "client": client_attacks, "step": step_attacks}


def judge(attack: launcher_attacks.Attack, stage: Stage, verbose: bool) -> str:
    """Empty: it has failed, with a reason that was logged."""
    before = len(stage.logged(attack.logged))
    outcome = attack.attempt().strip()
    if verbose:
        print(f"  {attack.name}: {outcome}")
    if outcome.startswith("exit status 0"):
        return f"it has succeeded: {outcome}"
    if not any(reason in outcome for reason in attack.reasons):
        return f"it has failed with another reason: {outcome}"
    new = stage.logged(attack.logged)[before:]
    if attack.logged and not any("refused" in line and reason in line
                                 for line in new.splitlines() for reason in attack.reasons):
        return f"it has failed, but the log says: {new}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--only", choices=FAMILIES, nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("attacks: needs root, to make users")
        return 1 if os.environ.get("CI") else SKIPPED
    if not has_control_groups():
        print("not checked: this kernel has no control groups, without which no job is started for another")
        return SKIPPED
    wrong = []
    count = 0
    with Stage(options.build) as stage, Watch() as watch:
        made = secrets.make(stage)
        for attack in [one for family in options.only for one in FAMILIES[family].all_of(stage)]:
            count += 1
            if (why := judge(attack, stage, options.verbose)):
                wrong.append(f"{attack.name}: {why}")
                print(f"attacks: {wrong[-1]}", flush=True)
        leaks = secrets.found_in(watch.seen, made)
        wrong += leaks
        print("\n".join(f"attacks: a secret: {leak}" for leak in leaks) or
              f"no secret in {len(watch.seen)} command lines, the journal and the logs", flush=True)
    print(f"{count} attempts, {len(wrong)} successful or without a logged reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
