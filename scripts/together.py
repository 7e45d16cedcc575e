#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""together.py FILE...: which source files of a library are compiled together, included by one file.

Most of what a compiler does for a file is reading headers. Prints a number for each file, in their
order, separated by semicolons: files of one number define no name twice.
"""

import math
import re
import sys
from pathlib import Path

MOST_TOGETHER = 26  # more wait for one compiler while another processor idles
ALONE = ""  # a name of a file that is not compiled with others
SOURCE = Path(__file__).resolve().parent.parent
# What a source file defines for itself, at the beginning of a line of an unnamed namespace. Two files
# do not compile together if they define the same, unless it is the same alias, nor with others if it
# is the name of a type.
UNNAMED = re.compile(r"^namespace {$(.*?)^}  // namespace$", re.MULTILINE | re.DOTALL)
DEFINITION = re.compile(
    r"^[A-Za-z\[][^\n(=;]*?(?<!::)\b([A-Z]\w*|k[A-Z]\w*)(?:\(|\[| [=:{]| final|{)", re.MULTILINE)
ALIAS = re.compile(r"^using (\w+) = ([^;]*);", re.MULTILINE)
TYPE = re.compile(r"^(?:struct|class|enum class|enum|using) (\w+)\b(?!;)", re.MULTILINE)


def names_of(text: str) -> dict[str, str]:
    """Each name, with what it is an alias of: empty if it is none."""
    parts = UNNAMED.findall(text)
    names = {name: "" for part in parts for name in DEFINITION.findall(part)}
    return names | {name: of for part in parts for name, of in ALIAS.findall(part)}


def room_of(file: Path) -> Path:
    """The folder of src/ that it lies in, which is a namespace; of other files their folder."""
    parts = file.resolve().relative_to(SOURCE).parts
    return SOURCE.joinpath(*parts[:2]) if parts[0] == "src" else file.parent


def types(room: Path) -> set[str]:
    """Those that headers define and the room's files can name without a namespace."""
    headers = [*SOURCE.glob("include/trainyard/*.h"), *room.glob("**/*.h"),
               *SOURCE.glob("tests/support/*.h")]
    return {name for header in headers for name in TYPE.findall(header.read_text())}


def batches_of(files: list[Path]) -> list[list[Path]]:
    """The files in batches that probably compile as one file."""
    batches: list[tuple[list[Path], dict[str, str]]] = []
    # Of one size, so that no batch is left for the end.
    most = math.ceil(len(files) / math.ceil(len(files) / MOST_TOGETHER)) if files else 0
    known = {room: types(room) for room in {room_of(file) for file in files}}
    for file in files:
        names = names_of(file.read_text())
        if names.keys() & known[room_of(file)]:
            batches.append(([file], {**names, ALONE: ""}))
            continue
        for batch, taken in batches:
            both = names.keys() & taken.keys()
            if (len(batch) < most and ALONE not in taken
                    and room_of(file) == room_of(batch[0])
                    and all(names[name] and names[name] == taken[name] for name in both)):
                batch.append(file)
                taken |= names
                break
        else:
            batches.append(([file], names))
    return [batch for batch, _ in batches]


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]]
    number = {file: k for k, batch in enumerate(batches_of(files)) for file in batch}
    print(";".join(str(number[file]) for file in files))


if __name__ == "__main__":
    main()
