#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""release.py VERSION: makes a release of what is on main: the changelog's section, the version, one commit and its tag.

Exit status: 0 done, 1 something stands against it, 2 wrong usage, 3 CHANGELOG.md or version.h is not as expected."""

import argparse
import datetime
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION_FILE = "include/trainyard/version.h"
PYTHON_FILE = "python/trainyard/__init__.py"  # has the same version
CHANGELOG = "CHANGELOG.md"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Results")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


class Refused(Exception):
    """With what is wrong and what was expected; `status` is that of the process."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def version_definition(text):
    found = re.search(r'(#define TRAINYARD_VERSION ")([^"]*)(")', text)
    if found is None or not VERSION.fullmatch(found[2]):
        raise Refused(f'{VERSION_FILE}: no version; expected #define TRAINYARD_VERSION "X.Y.Z"', 3)
    return found


def check_tree(version):
    branch = git("rev-parse", "--abbrev-ref", "HEAD")
    if branch != "main":
        raise Refused(f"the branch is '{branch}'; expected main")
    changed = git("status", "--porcelain")
    if changed:
        raise Refused(f"the tree is not clean; expected everything to be committed:\n{changed}")
    if git("tag", "--list", f"v{version}"):
        raise Refused(f"there is a tag v{version} already; expected a version without one")


def unreleased(lines):
    """Where the section's text begins and ends, and the text without empty parts."""
    heading = re.compile(r"## |\[[^\]]+\]: ")
    try:
        start = lines.index("## [Unreleased]") + 1
    except ValueError:
        raise Refused(f"{CHANGELOG}:1: no section; expected a heading '## [Unreleased]'", 3) from None
    end = next((i for i in range(start, len(lines)) if heading.match(lines[i])), len(lines))
    parts = []
    for i in range(start, end):
        if lines[i].startswith("### "):
            if lines[i][4:] not in KINDS:
                raise Refused(f"{CHANGELOG}:{i + 1}: '{lines[i]}'; expected one of {', '.join(KINDS)}", 3)
            parts.append([lines[i]])
        elif lines[i].strip():
            if not parts:
                raise Refused(f"{CHANGELOG}:{i + 1}: text before the first '### '; expected one of {', '.join(KINDS)}", 3)
            parts[-1].append(lines[i])
    parts = [part for part in parts if len(part) > 1]
    if not parts:
        raise Refused(f"{CHANGELOG}:{start}: the section 'Unreleased' is empty; expected what has changed", 3)
    return start, end, "\n\n".join("\n".join(part) for part in parts)


def released(changelog, old, new, date):
    """The changelog with the section of the version, and that section's text."""
    lines = changelog.splitlines()
    start, end, text = unreleased(lines)
    if any(line.startswith(f"## [{new}]") for line in lines):
        raise Refused(f"{CHANGELOG}: there is a section [{new}] already; expected none", 3)
    section = ["", f"## [{new}] - {date}", "", *text.split("\n"), ""]
    result = "\n".join(lines[:start] + section + lines[end:]) + "\n"
    # Links that compare versions, where there are any.
    result = re.sub(rf"^\[Unreleased\]: (\S+)v{re.escape(old)}(\.\.\.)HEAD$",
                    rf"[Unreleased]: \g<1>v{new}\2HEAD\n[{new}]: \g<1>v{old}\2v{new}", result, flags=re.M)
    return result, text


def run_checks(verbs):
    for verb in verbs:
        print(f"release: ./dev {verb}", flush=True)
        if subprocess.run(["./dev", verb], cwd=ROOT, check=False).returncode != 0:
            raise Refused(f"./dev {verb} has failed; expected it to pass")
    changed = git("status", "--porcelain")
    if changed:
        raise Refused(f"the checks have changed the tree; expected it to be clean:\n{changed}")


def release(options):
    if not VERSION.fullmatch(options.version):
        raise Refused(f"version '{options.version}'; expected X.Y.Z without leading zeros", 2)
    files = {name: (ROOT / name).read_text() for name in (VERSION_FILE, PYTHON_FILE, CHANGELOG)}
    definition = version_definition(files[VERSION_FILE])
    old, new = definition[2], options.version
    in_python = f'__version__ = "{old}"'
    if in_python not in files[PYTHON_FILE]:
        raise Refused(f"{PYTHON_FILE}: has another version than {VERSION_FILE}; expected {in_python}", 3)
    if [int(part) for part in new.split(".")] <= [int(part) for part in old.split(".")]:
        raise Refused(f"version {new} is not greater than the present one; expected more than {old}")
    check_tree(new)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    changelog, text = released(files[CHANGELOG], old, new, date)
    header = files[VERSION_FILE]
    after = {VERSION_FILE: header[:definition.start(2)] + new + header[definition.end(2):],
             PYTHON_FILE: files[PYTHON_FILE].replace(in_python, f'__version__ = "{new}"'),
             CHANGELOG: changelog}
    verbs = ([] if options.checked else ["test"]) + (["bench"] if options.bench else [])
    if options.dry_run:
        for verb in verbs:
            print(f"would run ./dev {verb}")
        for name in files:
            sys.stdout.writelines(difflib.unified_diff(
                files[name].splitlines(True), after[name].splitlines(True), f"a/{name}", f"b/{name}"))
        print(f"would commit 'Release {new}' and tag it v{new}")
        return
    run_checks(verbs)
    for name, content in after.items():
        (ROOT / name).write_text(content)
    git("commit", "--quiet", "--message", f"Release {new}", "--", *after)
    git("tag", "--annotate", "--cleanup=verbatim", "--message", f"Trainyard {new}\n\n{text}\n", f"v{new}")
    print(f"release: {git('rev-parse', '--short', 'HEAD')} is v{new}; publish it with: git push origin main v{new}")


def main():
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__.split("\n")[0])
    parser.add_argument("version", metavar="VERSION", help="greater than the present one, as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="check, and show what would be done")
    parser.add_argument("--checked", action="store_true", help="the tests have passed on this commit: do not run them")
    parser.add_argument("--bench", action="store_true", help="run ./dev bench, too")
    try:
        release(parser.parse_args())
    except Refused as refused:
        print(f"release: {refused}", file=sys.stderr)
        sys.exit(refused.status)


if __name__ == "__main__":
    main()
