#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# one-definition.py FILE...: names a type that two files of the same program define in the same
# namespace. No compiler sees it, and whatever template the two share is compiled for one of them.
import collections
import re
import sys


def types_of(path):
    """The types that a file defines at the top of a named namespace."""
    namespaces = []
    for line in open(path, encoding="utf-8"):
        opened = re.match(r"(?:inline )?namespace\s*([\w:]*)\s*\{", line)
        if opened:
            namespaces.append(opened.group(1))
        elif re.match(r"\}\s*// namespace", line) and namespaces:
            namespaces.pop()
        elif "" not in namespaces:
            of_type = re.match(r"(?:struct|class|enum(?: class)?) (\w+)\b(?!::)[^;(]*\{", line)
            if of_type:
                yield "::".join([*namespaces, of_type.group(1)])


places = collections.defaultdict(list)
for file in sys.argv[1:]:
    if not file.startswith(("examples/", "tests/plugin")):
        for name in types_of(file):
            places[name].append(file)
twice = {name: files for name, files in places.items() if len(files) > 1}
for name, files in sorted(twice.items()):
    print(f"{name} is defined in {' and in '.join(files)}; one name, one type", file=sys.stderr)
sys.exit(1 if twice else 0)
