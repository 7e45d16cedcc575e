#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy.py BUILD_FOLDER FILE...: compiles each file by itself, as far as the warnings, and runs
clang-tidy over them, as many at once as there are cores.

A clean verdict is kept beside the compiler cache, under the hash of all that it depends on: the
preprocessed file with its comments, the command, the configuration and the version of clang-tidy.
Only files whose hash has no verdict are checked. Most of what clang-tidy does is reading headers, so
that it is first given files of one folder together, included by one file; if anything is found
there, or they do not compile together, it is given each of them.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from together import batches_of

TIDY = "clang-tidy-14"
SOURCE = Path(__file__).resolve().parent.parent


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Linter:
    def __init__(self, build: Path) -> None:
        self._build = build
        self._commands = {Path(entry["file"]): entry
                          for entry in json.loads((build / "compile_commands.json").read_text())}
        self._verdicts = Path(output_of("ccache", "--get-config", "cache_dir")) / "trainyard-tidy"
        self._verdicts.mkdir(parents=True, exist_ok=True)
        self._digests: dict[str, str] = {}
        self._settings = (SOURCE / ".clang-tidy").read_bytes() + output_of(TIDY, "--version").encode()

    def _words(self, file: Path) -> list[str]:
        """The compiler's command for a file, without its output."""
        words = shlex.split(self._commands[file]["command"])
        if Path(words[0]).name == "ccache":
            del words[0]
        output = words.index("-o")
        del words[output:output + 2]
        return words

    def verdict_of(self, file: Path) -> Path:
        """Where a clean verdict on the file is kept; the same wherever the source tree lies."""
        words = self._words(file)
        command = " ".join(words).encode()
        # What the file was preprocessed from is remembered, too: if it is still the same, so is the
        # result.
        memory = self._verdicts / ("read-" + self._hash(command, str(file).encode()))
        known = json.loads(memory.read_text()) if memory.exists() else {}
        if known and self._contents(known["read"]) == known["contents"]:
            return self._verdicts / known["verdict"]
        # -C: comments can hold NOLINT.
        preprocessed = subprocess.run([*words, "-E", "-C"], cwd=self._commands[file]["directory"],
                                      check=True, capture_output=True).stdout
        verdict = self._hash(command, preprocessed)
        folder = Path(self._commands[file]["directory"])
        names = {folder / name.decode()
                 for name in re.findall(rb'^# \d+ "([^"<]+)"', preprocessed, re.MULTILINE)}
        read = sorted(str(name.relative_to(SOURCE) if name.is_relative_to(SOURCE) else name)
                      for name in names if name.is_file())
        half = memory.with_suffix(".half")
        half.write_text(json.dumps(
            {"read": read, "contents": self._contents(read), "verdict": verdict}))
        half.replace(memory)
        return self._verdicts / verdict

    def _hash(self, *parts: bytes) -> str:
        return hashlib.sha256(b"\0".join(
            part.replace(str(SOURCE).encode(), b".") for part in (self._settings, *parts))).hexdigest()

    def _contents(self, names: list[str]) -> str:
        """The hash of the files, which are named from the source tree; each is read once."""
        for name in names:
            if name not in self._digests:
                file = SOURCE / name
                self._digests[name] = hashlib.sha256(
                    file.read_bytes()).hexdigest() if file.is_file() else "gone"
        return hashlib.sha256(" ".join(self._digests[name] for name in names).encode()).hexdigest()

    def check(self, batch: list[Path]) -> dict[Path, str]:
        """What is wrong with each file that is not clean; said once where it is found together."""
        compiled = {file: self._compile(file) for file in batch}
        if any(compiled.values()):
            return {file: said for file, said in compiled.items() if said}
        found = self._check_together(batch) if len(batch) > 1 else None
        if found is not None:
            wrong = [file for file in batch if f"{file}:" in found] or (batch if found else [])
            return {file: found if file == wrong[0] else "" for file in wrong}
        runs = {file: self._run("-p", self._build, file) for file in batch}
        return {file: run.stdout + run.stderr for file, run in runs.items() if run.returncode != 0}

    def _compile(self, file: Path) -> str:
        """What the compiler says of a file by itself, which is nothing if it compiles."""
        run = subprocess.run([*self._words(file), "-fsyntax-only"], capture_output=True, text=True,
                             cwd=self._commands[file]["directory"])
        return run.stderr

    def _check_together(self, batch: list[Path]) -> str | None:
        """What is wrong with the files; none if they do not compile together."""
        words = self._words(batch[0])
        flags = [word for word in words[1:] if word not in ("-c", str(batch[0]))]
        with tempfile.TemporaryDirectory() as folder:
            together = Path(folder) / "together.cc"
            together.write_text("".join(f'#include "{file}"\n' for file in batch))
            # -w: a local name may be that of another file.
            run = self._run(f"--config-file={SOURCE}/.clang-tidy",
                            "--checks=-bugprone-suspicious-include", together, "--", *flags, "-w",
                            folder=self._commands[batch[0]]["directory"])
        if "[clang-diagnostic-error" in run.stdout:
            return None
        return run.stdout if run.returncode != 0 else ""

    @staticmethod
    def _run(*words: str | Path, folder: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TIDY, "--quiet", *words], cwd=folder, capture_output=True, text=True)


def main() -> int:
    linter = Linter(Path(sys.argv[1]).resolve())
    files = [(SOURCE / name).resolve() for name in sys.argv[2:]]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        verdicts = dict(zip(files, pool.map(linter.verdict_of, files)))
        unknown = [file for file in files if not verdicts[file].exists()]
        wrong: dict[Path, str] = {}
        batches = batches_of(unknown)
        for batch, found in zip(batches, pool.map(linter.check, batches)):
            wrong |= found
            for file in batch:
                if file not in found:
                    verdicts[file].touch()
    print("\n".join(found for found in wrong.values() if found))
    print(f"clang-tidy: {len(files)} files, {len(files) - len(unknown)} of them known to be clean, "
          f"{len(wrong)} not clean")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
