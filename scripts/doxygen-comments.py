#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doxygen-comments.py FILE: the header with its plain comments as doxygen's own: `///` above a declaration, `///<`
behind one, and what stands at the head of the file as the description of the file."""

import pathlib
import re
import sys

path = pathlib.Path(sys.argv[1])
lines = path.read_text().splitlines()
head = True
for i, line in enumerate(lines):
    if head and line.startswith("// SPDX"):
        lines[i] = f"/// @file {path.name}"
        continue
    head = head and line.startswith("//")
    if re.match(r" *// ?-{3,}", line):  # a rule between parts
        lines[i] = ""
    elif re.match(r" *//", line):
        lines[i] = line.replace("//", "///", 1)
    else:
        lines[i] = re.sub(r"(?<=\S)  // ", "  ///< ", line)
print("\n".join(lines))
