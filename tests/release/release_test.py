# SPDX-License-Identifier: Apache-2.0
"""release_test.py SOURCE: `./dev release` in a repository made for the test."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
HEADER = "include/trainyard/version.h"
PYTHON = "python/trainyard/__init__.py"
CHANGELOG = """# Changelog

## [Unreleased]

### Added
- A wheel.
  It turns.

### Changed

### Fixed
- The brake.

## [1.2.3] - 2020-02-02

### Added
- A cart.

[Unreleased]: https://example.org/cart/compare/v1.2.3...HEAD
[1.2.3]: https://example.org/cart/releases/v1.2.3
"""
# The tests of the repository: they pass unless there is a file `bad`, and say that they ran.
DEV = '#!/bin/sh\necho "ran $1"\n[ ! -e ../bad ]\n'


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "cart"
        for name in ("scripts/release.py", HEADER, PYTHON):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, self.root / name)
        self.write(HEADER, '// The version.\n#define TRAINYARD_VERSION "1.2.3"\n')
        self.write(PYTHON, '__version__ = "1.2.3"\n')
        self.write("CHANGELOG.md", CHANGELOG)
        self.write("dev", DEV)
        (self.root / "dev").chmod(0o755)
        self.environment = {"PATH": os.environ["PATH"], "HOME": folder.name, "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{who}_NAME": "Somebody", f"GIT_{who}_EMAIL": "somebody@example.org"}
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def write(self, name, text):
        (self.root / name).write_text(text)

    def read(self, name):
        return (self.root / name).read_text()

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.root, env=self.environment, check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Work")

    def release(self, *arguments):
        return subprocess.run([sys.executable, "-B", "scripts/release.py", *arguments], cwd=self.root,
                              env=self.environment, check=False, capture_output=True, text=True)

    def refused(self, message, *arguments, status=1):
        """It says so and has changed nothing."""
        before = self.git("rev-parse", "HEAD"), self.git("status", "--porcelain"), self.git("tag")
        done = self.release(*arguments)
        self.assertEqual((done.returncode, message in done.stderr), (status, True), done.stderr)
        self.assertEqual(before, (self.git("rev-parse", "HEAD"), self.git("status", "--porcelain"), self.git("tag")))

    def test_releases(self):
        done = self.release("1.3.0", "--checked")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("ran test", done.stdout)
        self.assertEqual(self.read(HEADER), '// The version.\n#define TRAINYARD_VERSION "1.3.0"\n')
        self.assertEqual(self.read(PYTHON), '__version__ = "1.3.0"\n')
        begin = "# Changelog\n\n## [Unreleased]\n\n## [1.3.0] - "
        changelog = self.read("CHANGELOG.md")
        self.assertTrue(changelog.startswith(begin), changelog)
        date, rest = changelog[len(begin):].split("\n", 1)
        self.assertRegex(date, r"^\d{4}-\d\d-\d\d$")
        self.assertEqual(rest,
                         "\n### Added\n- A wheel.\n  It turns.\n\n### Fixed\n- The brake.\n\n"
                         "## [1.2.3] - 2020-02-02\n\n### Added\n- A cart.\n\n"
                         "[Unreleased]: https://example.org/cart/compare/v1.3.0...HEAD\n"
                         "[1.3.0]: https://example.org/cart/compare/v1.2.3...v1.3.0\n"
                         "[1.2.3]: https://example.org/cart/releases/v1.2.3\n")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("rev-parse", "v1.3.0^{commit}"), self.git("rev-parse", "HEAD"))
        self.assertEqual(self.git("log", "-1", "--format=%s"), "Release 1.3.0")
        self.assertEqual(self.git("tag", "--list", "--format=%(contents)", "v1.3.0"),
                         "Trainyard 1.3.0\n\n### Added\n- A wheel.\n  It turns.\n\n### Fixed\n- The brake.")

    def test_runs_the_tests_and_the_benchmark(self):
        done = self.release("2.0.0", "--bench")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ran test\n", done.stdout)
        self.assertIn("ran bench\n", done.stdout)

    def test_failed_tests_stop_it(self):
        (self.root.parent / "bad").touch()
        self.refused("./dev test has failed", "1.3.0")

    def test_dry_run_changes_nothing(self):
        done = self.release("1.3.0", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in ("would run ./dev test", '+#define TRAINYARD_VERSION "1.3.0"', "+## [1.3.0] - ",
                     "would commit 'Release 1.3.0' and tag it v1.3.0"):
            self.assertIn(line, done.stdout)
        self.assertEqual(self.git("status", "--porcelain") + self.git("tag"), "")
        self.assertEqual(self.git("log", "--format=%s"), "Work")

    def test_refuses_versions(self):
        self.refused("expected X.Y.Z", "1.3", status=2)
        self.refused("expected X.Y.Z", "v1.3.0", status=2)
        self.refused("expected X.Y.Z", "1.03.0", status=2)
        self.refused("is not greater than the present one; expected more than 1.2.3", "1.2.3")
        self.refused("is not greater", "1.1.9")
        self.refused("required: VERSION", status=2)
        self.git("tag", "v1.10.0")
        self.refused("there is a tag v1.10.0 already", "1.10.0")

    def test_refuses_a_tree_that_is_not_clean_and_other_branches(self):
        self.write("new", "")
        self.refused("the tree is not clean", "1.3.0", "--checked")
        self.commit()
        self.git("checkout", "--quiet", "-b", "side")
        self.refused("the branch is 'side'; expected main", "1.3.0", "--checked")

    def test_refuses_a_changelog_that_says_nothing_or_otherwise(self):
        for text, message in (
                ("## [Unreleased]\n\n### Added\n\n## [1.2.3]\n", "CHANGELOG.md:1: the section 'Unreleased' is empty"),
                ("# Changelog\n", "CHANGELOG.md:1: no section"),
                ("## [Unreleased]\n\n### News\n- A wheel.\n", "CHANGELOG.md:3: '### News'; expected one of Added"),
                ("## [Unreleased]\n\n- A wheel.\n", "CHANGELOG.md:3: text before the first '### '"),
                (CHANGELOG + "## [1.3.0]\n", "there is a section [1.3.0] already")):
            self.write("CHANGELOG.md", text)
            self.commit()
            self.refused(message, "1.3.0", "--checked", status=3)

    def test_takes_the_repository_itself(self):
        for name in (HEADER, PYTHON, "CHANGELOG.md"):
            shutil.copy(SOURCE / name, self.root / name)
        self.commit()
        done = self.release("999.0.0", "--dry-run")
        if "the section 'Unreleased' is empty" not in done.stderr:  # so it is after a release
            self.assertEqual(done.returncode, 0, done.stderr)


unittest.main()
