#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts_test.py SOURCE: what `./dev reference` says of a folder of inputs, and that nothing is left
unchecked in CI. The scripts run in a source tree of their own, with two inputs and nothing to build."""
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
PLAIN = b"job,duration\n1,60\n"
PACKED = b"job,duration\r\n1,70\r\n"


class Scripts(unittest.TestCase):
    def setUp(self):
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("dev", "scripts/reference.py", "scripts/test.sh", "scripts/skipped.py",
                     ".ci/run"):
            (self.tree / name).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, self.tree / name)
        rows = ["path,bytes,sha256"]
        for path, data in (("data/a/plain.csv", PLAIN), ("data/b/packed.csv.gz", PACKED)):
            rows.append(f"{path},{len(data)},{hashlib.sha256(data).hexdigest()}")
        self.write("tests/golden/inputs.csv", "\n".join(rows).encode() + b"\n")

    def write(self, name, data):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def run_in_tree(self, *command, **variables):
        environment = {key: value for key, value in os.environ.items()
                       if key != "CI" and not key.startswith("TRAINYARD_")}
        return subprocess.run(command, cwd=self.tree, env=environment | variables, check=False,
                              capture_output=True, text=True)

    def check_inputs(self):
        return self.run_in_tree("./dev", "reference", "inputs")

    def test_a_whole_folder_is_said_to_be_so(self):
        self.write("inputs/data/a/plain.csv", PLAIN)
        for packed in (gzip.compress(PACKED, 1), gzip.compress(PACKED, 9, mtime=7), PACKED):
            self.write("inputs/data/b/packed.csv.gz", packed)
            result = self.check_inputs()
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("2 of 2 inputs are as they should be, 0 missing, 0 different\n",
                          result.stdout)
            self.assertIn("docs/reference.md", result.stdout)

    def test_what_is_missing_and_what_differs_is_named(self):
        self.write("inputs/data/b/packed.csv.gz", gzip.compress(PACKED.replace(b"\r", b"")))
        result = self.check_inputs()
        self.assertEqual(result.returncode, 1)
        found = hashlib.sha256(PACKED.replace(b"\r", b"")).hexdigest()
        self.assertEqual(result.stdout.splitlines()[:3], [
            "missing  data/a/plain.csv",
            f"differs  data/b/packed.csv.gz: {len(PACKED) - 2} bytes, sha256 {found}; expected "
            f"{len(PACKED)} bytes, sha256 {hashlib.sha256(PACKED).hexdigest()}",
            "0 of 2 inputs are as they should be, 1 missing, 1 different"])
        self.assertIn("docs/reference.md", result.stdout)

    def test_a_damaged_archive_differs(self):
        self.write("inputs/data/a/plain.csv", PLAIN)
        for damaged in (gzip.compress(PACKED)[:-9], b"\x1f\x8bno archive"):
            self.write("inputs/data/b/packed.csv.gz", damaged)
            result = self.check_inputs()
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("differs  data/b/packed.csv.gz: cannot be read: ", result.stdout)
            self.assertIn("1 of 2 inputs are as they should be, 0 missing, 1 different",
                          result.stdout)

    def test_without_a_folder_it_says_how_to_use_it(self):
        for arguments in ([], ["absent"], ["scripts", "tests"]):
            result = self.run_in_tree("./dev", "reference", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn("usage: ./dev reference FOLDER", result.stderr)

    def with_fake_tools(self):
        """A build and a test run that only say that they were called, and with which inputs."""
        for name, says in (("scripts/build.sh", "build"), ("bin/ctest", "ctest"),
                           ("scripts/generated_inputs.py", "generated")):
            self.write(name, f'#!/bin/sh\necho "{says} ${{TRAINYARD_REFERENCE-no folder}}'
                             f' ${{TRAINYARD_WITHOUT_REFERENCE-whole}}"\n'.encode()).chmod(0o755)
        self.write("build/release/Testing/Temporary/LastTest.log", b"")
        return {"PATH": f"{self.tree}/bin:{os.environ['PATH']}"}

    def test_a_folder_that_is_named_must_be_there(self):
        result = self.run_in_tree("scripts/test.sh", TRAINYARD_REFERENCE=str(self.tree / "absent"),
                                  **self.with_fake_tools())
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"no published inputs at {self.tree}/absent", result.stderr)
        self.assertIn("docs/reference.md", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_a_clone_that_stands_alone_is_tested_with_generated_inputs(self):
        for variables in ({}, {"CI": "true"}):
            result = self.run_in_tree("scripts/test.sh", **self.with_fake_tools(), **variables)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.splitlines()[:3],
                             ["build no folder 1", "generated no folder 1",
                              f"ctest {self.tree.resolve()}/build/generated 1"])
            self.assertIn("docs/reference.md", result.stdout.splitlines()[-1])

    def test_inputs_without_results_are_used(self):
        self.write("inputs/data/a/plain.csv", PLAIN)
        result = self.run_in_tree("scripts/test.sh", TRAINYARD_REFERENCE=str(self.tree / "inputs"),
                                  **self.with_fake_tools())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"ctest {self.tree.resolve()}/inputs 1\n", result.stdout)
        self.assertNotIn("generated", result.stdout)

    def test_a_whole_folder_leaves_nothing_out(self):
        self.write("inputs/golden/manifest.csv", b"case\n")
        result = self.run_in_tree("scripts/test.sh", TRAINYARD_REFERENCE=str(self.tree / "inputs"),
                                  TRAINYARD_WITHOUT_REFERENCE="1", **self.with_fake_tools())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[1:], [f"ctest {self.tree.resolve()}/inputs whole"])

    def test_what_was_not_checked_is_said_at_the_end(self):
        log = b"""1/4 Test: whole
[  SKIPPED ] 1 test.
<end of output>
2/4 Test: partly
part_test.cc:7: Skipped
not checked: needs the published inputs
[  SKIPPED ] 2 tests.
<end of output>
3/4 Test: golden/published
not checked: needs the published inputs
<end of output>
4/4 Test: golden/published_here
9 cases equal, 0 near, 0 different, 0 not supported, 3 without their inputs
<end of output>
"""
        tools = self.with_fake_tools()
        self.write("build/release/Testing/Temporary/LastTest.log", log)
        result = self.run_in_tree("scripts/test.sh", **tools)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[3:], [
            "left out, for lack of the published inputs or results:",
            "  partly: 2 tests",
            "  golden/published: all",
            "  golden/published_here: 9 cases equal, 0 near, 0 different, 0 not supported, 3 without "
            "their inputs",
            "docs/reference.md says where they come from; then: TRAINYARD_REFERENCE=FOLDER ./dev test"])

    def test_ci_fails_where_a_test_was_skipped_but_for_what_the_kernel_refuses(self):
        for name in ("scripts/build.sh", "bin/ctest"):
            self.write(name, b"#!/bin/sh\n").chmod(0o755)
        self.write("inputs/golden/manifest.csv", b"")
        refused = b"a_test.cc:3: Skipped\nnot checked: this kernel mounts nothing\n[  SKIPPED ] 1 test.\n"
        for output, expected in ((b"", 0), (refused, 0), (b"12 passed, 3 warnings in 2s\n", 0),
                                 (refused + b"a_test.cc:9: Skipped\nnot today\n", 1),
                                 (b"12 passed, 2 skipped in 2s\n", 1)):
            self.write("build/release/Testing/Temporary/LastTest.log",
                       b"1/9 Test: fine\nok\n7/9 Test: some/test\n" + output)
            result = self.run_in_tree("scripts/test.sh", CI="true",
                                      PATH=f"{self.tree}/bin:{os.environ['PATH']}",
                                      TRAINYARD_REFERENCE=str(self.tree / "inputs"))
            self.assertEqual(result.returncode, expected, result.stdout + result.stderr)
            self.assertEqual("some/test: " in result.stdout, expected == 1)
            self.assertEqual("skipped, in CI" in result.stderr, expected == 1)

    def test_ci_needs_the_inputs_and_leaves_nothing_unchecked(self):
        show = b'#!/bin/sh\necho "$0 $* $TRAINYARD_REFERENCE"\n'
        for name in ("dev", "scripts/sanitize.sh", "scripts/lint.sh"):
            self.write(name, show).chmod(0o755)
        folder = str(self.tree / "inputs")
        result = self.run_in_tree(".ci/run", TRAINYARD_REFERENCE=folder)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn(f"no published inputs and results at {folder}", result.stderr)
        self.write("inputs/golden/manifest.csv", b"case\n")
        result = self.run_in_tree(".ci/run", TRAINYARD_REFERENCE=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines(),
                         [f"./dev test {folder}", f"./dev package --test {folder}",
                          f"scripts/sanitize.sh  {folder}", f"scripts/lint.sh  {folder}"])


if __name__ == "__main__":
    unittest.main()
