#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""skipped.py LOG: lists the tests in ctest's log that were skipped for another reason than that the kernel
refuses what they need ("not checked: this kernel ..."). Exit status 0 if there are any, else 1.
"""

import re
import sys
from pathlib import Path

SAID = "not checked: this kernel"
TEST = re.compile(r"^\d+/\d+ Test: (.*)$")
OF_GTEST = re.compile(r": Skipped$")  # a line with the place; the reason is the next one
OF_PYTEST = re.compile(r"^\d+ passed\b.*\b(\d+) skipped\b|^(\d+) skipped\b")


def skipped(lines: list[str]) -> list[str]:
    found = []
    name = ""
    for line, following in zip(lines, [*lines[1:], ""]):
        if test := TEST.match(line):
            name = test[1]
        elif OF_GTEST.search(line) and not following.startswith(SAID):
            found.append(f"{name}: {following or line}")
        elif of_pytest := OF_PYTEST.match(line):
            found.append(f"{name}: {of_pytest[1] or of_pytest[2]} tests of pytest")
    return found


def main() -> int:
    found = skipped(Path(sys.argv[1]).read_text(errors="replace").splitlines())
    print(*found, sep="\n", end="\n" if found else "")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
