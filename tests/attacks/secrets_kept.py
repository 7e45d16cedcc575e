# SPDX-License-Identifier: Apache-2.0
"""Looks for secrets where others could read them: in command lines, while all is going on, and in journal
and logs, when it is over."""

import re
import threading
import time
from pathlib import Path

from expectations import expect
from stage import FOLDER, Stage

# Signatures of tokens and credentials, and keys. (Hashes of files have half as many digits.)
FORMS = (rb"[0-9a-f]{128}", rb"-----BEGIN [A-Z ]*PRIVATE KEY", rb"trainyard credential 1")


class Watch:
    """Collects all command lines of the machine, by `with`."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self) -> "Watch":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def run(self) -> None:
        while not self.over.is_set():
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(path.read_bytes())
                except OSError:
                    pass
            time.sleep(0.02)


def make(stage: Stage) -> list[bytes]:
    """Secrets that an admin makes: a login and a node's token, as they are printed."""
    secrets = []
    for words in (("user", "add", "ty-olga", "--uid", "4711"), ("node", "token", "n0")):
        answer = stage.ask("root", *words)
        expect(answer.returncode == 0, f"{words}: {answer.stderr}")
        secrets.append(answer.stdout.split(".")[0].strip().encode())
        expect(len(secrets[-1]) == 64, f"{words} prints a secret: {answer.stdout}")
    return secrets


def found_in(seen: set[bytes], secrets: list[bytes]) -> list[str]:
    """Where there is one; `seen`: command lines."""
    places = {f"the command line {line[:200]!r}": line for line in seen}
    for path in [*FOLDER.glob("controller/controller.db*"), *FOLDER.glob("*.log")]:
        places[str(path)] = path.read_bytes()
    return [f"{where} has {form!r}" for where, text in places.items()
            for form in (*FORMS, *map(re.escape, secrets)) if re.search(form, text)]
