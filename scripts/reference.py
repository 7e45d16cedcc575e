#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""reference.py FOLDER: whether the inputs of the published results that were put together in FOLDER
(docs/reference.md) are those that the results were made from (tests/golden/inputs.csv)."""
import csv
import gzip
import hashlib
import sys
import zlib
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent


def contents(path):
    """The bytes of the file, unpacked where they are packed: how they are packed does not matter."""
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def complaint(path, row):
    """What is wrong with one input; nothing where it is as it should be."""
    if not path.is_file():
        return f"missing  {row['path']}"
    expected = f"expected {row['bytes']} bytes, sha256 {row['sha256']}"
    try:
        data = contents(path)
    except (OSError, EOFError, zlib.error) as error:
        return f"differs  {row['path']}: cannot be read: {error}; {expected}"
    found = hashlib.sha256(data).hexdigest()
    if found == row["sha256"]:
        return None
    return f"differs  {row['path']}: {len(data)} bytes, sha256 {found}; {expected}"


def main(arguments):
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: ./dev reference FOLDER\n"
              "  FOLDER   where the inputs of the published results lie (docs/reference.md)",
              file=sys.stderr)
        if len(arguments) == 1:
            print(f"reference: '{arguments[0]}' is not a folder", file=sys.stderr)
        return 2
    with open(SOURCE / "tests/golden/inputs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wrong = [text for text in (complaint(Path(arguments[0], row["path"]), row) for row in rows)
             if text]
    for text in wrong:
        print(text)
    missing = sum(text.startswith("missing") for text in wrong)
    print(f"{len(rows) - len(wrong)} of {len(rows)} inputs are as they should be, {missing} missing, "
          f"{len(wrong) - missing} different")
    print("docs/reference.md says " + ("where they come from and how to lay them out" if wrong else
                                       "how to run the published results on them"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
