#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy.py BUILD_FOLDER FILE...: clang-tidy over the files, as many at once as there are cores.

A clean verdict is kept beside the compiler cache, under the hash of all that it depends on: the
preprocessed file with its comments, the command, the configuration and the version of clang-tidy.
Only files whose hash has no verdict are checked.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TIDY = "clang-tidy-14"
SOURCE = Path(__file__).resolve().parent.parent


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Linter:
    def __init__(self, build: Path) -> None:
        self._build = build
        self._commands = {entry["file"]: entry
                          for entry in json.loads((build / "compile_commands.json").read_text())}
        self._verdicts = Path(output_of("ccache", "--get-config", "cache_dir")) / "trainyard-tidy"
        self._verdicts.mkdir(parents=True, exist_ok=True)
        self._settings = (SOURCE / ".clang-tidy").read_bytes() + output_of(TIDY, "--version").encode()

    def _hash(self, file: Path) -> str:
        """The same wherever the source tree lies."""
        entry = self._commands[str(file)]
        words = shlex.split(entry["command"])
        if Path(words[0]).name == "ccache":
            del words[0]
        output = words.index("-o")
        del words[output:output + 2]
        # -C: comments can hold NOLINT.
        preprocessed = subprocess.run([*words, "-E", "-C"], cwd=entry["directory"], check=True,
                                      capture_output=True).stdout
        command = " ".join(words).encode()
        return hashlib.sha256(b"\0".join(
            part.replace(str(SOURCE).encode(), b".")
            for part in (self._settings, command, preprocessed))).hexdigest()

    def check(self, name: str) -> tuple[bool, str]:
        """Whether the verdict was known, and what is wrong."""
        file = (SOURCE / name).resolve()
        if str(file) not in self._commands:
            return False, f"{name}: not in {self._build}/compile_commands.json"
        verdict = self._verdicts / self._hash(file)
        if verdict.exists():
            os.utime(verdict)
            return True, ""
        run = subprocess.run([TIDY, "-p", self._build, "--quiet", file], capture_output=True,
                             text=True)
        if run.returncode == 0:
            verdict.touch()
            return False, ""
        return False, run.stdout


def main() -> int:
    linter = Linter(Path(sys.argv[1]).resolve())
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(linter.check, sys.argv[2:]))
    for _, wrong in results:
        if wrong:
            print(wrong)
    known = sum(was_known for was_known, _ in results)
    print(f"clang-tidy: {len(results)} files, {known} of them known to be clean")
    return 1 if any(wrong for _, wrong in results) else 0


if __name__ == "__main__":
    sys.exit(main())
