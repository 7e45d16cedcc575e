#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""setup_test.py SOURCE: what `./dev setup` says and does on machines of all kinds, with an apt-get of the
test's own; and what `./dev` says of its verbs."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
# What the commands below stand on; nothing else of this machine is to be found by setup.sh.
TOOLS = ("sh", "sed", "grep", "head", "tail", "tr", "dirname", "mktemp", "rm", "env", "echo", "cat")
LOCKED = ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)\n"
          "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?")
LISTS_LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4 (apt-get)"
NO_NETWORK = ("W: Failed to fetch http://mirror/debian/dists/bookworm/InRelease  Temporary failure resolving 'mirror'\n"
              "W: Some index files failed to download.")


class Machine(unittest.TestCase):
    def setUp(self):
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.tree / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/setup.sh", self.tree / "scripts")
        (self.tree / "packages.txt").write_text(
            "# Building\ng++\ncmake\n# The Debian package and the wheel\nfile\n# Tests and checks\ndoxygen\n")
        self.bin = self.tree / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.command("dpkg-query", 'for name; do :; done\ngrep -qsx "$name" "$STATE/installed" && printf installed')
        self.command("sleep", 'echo "$1" >>"$STATE/slept"')
        self.command("id", "echo 0")

    def command(self, name, text):
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def apt(self, update=(0, ""), install=(0, ""), locked=0, text=LOCKED):
        """An apt-get that finds its lock taken so many times."""
        (self.tree / "locked").write_text("x" * locked)
        for name, (_, said) in (("update", update), ("install", install), ("lock", (0, text))):
            (self.tree / name).write_text(said)
        self.command("apt-get", f"""
left=$(cat "$STATE/locked")
if [ -n "$left" ]; then printf %s "${{left#x}}" >"$STATE/locked"; cat "$STATE/lock"; exit 100; fi
case "$*" in
  *update*) cat "$STATE/update"; exit {update[0]} ;;
  *) echo "$*" >>"$STATE/asked"; cat "$STATE/install"; exit {install[0]} ;;
esac""")

    def setup_of(self, *arguments):
        return subprocess.run(["scripts/setup.sh", *arguments], cwd=self.tree, check=False, capture_output=True,
                              text=True, env={"PATH": str(self.bin), "STATE": str(self.tree)})

    def fails_with(self, *parts):
        result = self.setup_of()
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("setup: "), result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        return result

    def asked(self):
        return (self.tree / "asked").read_text().split()

    def test_installs_the_sections_that_are_asked_for(self):
        for arguments, packages in ((["build"], ["g++", "cmake"]), (["package"], ["g++", "cmake", "file"]),
                                    ([], ["g++", "cmake", "file", "doxygen"])):
            (self.tree / "asked").unlink(missing_ok=True)
            self.apt()
            result = self.setup_of(*arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([word for word in self.asked() if not word.startswith("-")][1:], packages)

    def test_asks_for_nothing_that_is_there(self):
        (self.tree / "installed").write_text("g++\ncmake\n")
        result = self.setup_of("build")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_waits_for_the_lock_of_another_program_and_says_so_once(self):
        for text, holder in ((LOCKED, "unattended-upgr, process 812"), (LISTS_LOCKED, "apt-get, process 4")):
            (self.tree / "slept").unlink(missing_ok=True)
            self.apt(locked=7, text=text)
            result = self.setup_of("build")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.count("waiting up to five minutes"), 1)
            self.assertIn(holder, result.stdout)
            self.assertEqual(len((self.tree / "slept").read_text().split()), 7)

    def test_gives_up_after_five_minutes(self):
        self.apt(locked=1000)
        self.fails_with("unattended-upgr, process 812", "five minutes", "type the command again")
        self.assertEqual(sum(map(int, (self.tree / "slept").read_text().split())), 300)

    def test_without_network_it_names_the_server_and_the_packages(self):
        self.apt(update=(0, NO_NETWORK), install=(100, "E: Unable to locate package g++\nE: Unable to locate package cmake"))
        self.fails_with("http://mirror/debian/dists/bookworm/InRelease cannot be reached", "g++ cmake", "check the network")

    def test_a_server_that_fails_half_way_is_named(self):
        self.apt(install=(100, "E: Failed to fetch http://mirror/pool/cmake.deb  Connection reset\n"
                               "E: Unable to fetch some archives, maybe run apt-get update"))
        self.fails_with("http://mirror/pool/cmake.deb", "type the command again", "is kept")

    def test_a_server_that_is_not_needed_may_fail(self):
        self.apt(update=(0, NO_NETWORK))
        self.assertEqual(self.setup_of().returncode, 0)

    def test_without_root_and_sudo_it_says_what_root_is_to_type(self):
        self.apt()
        self.command("id", "echo 1000")
        self.fails_with("neither root nor sudo", "apt-get install g++ cmake file doxygen")

    def test_with_sudo_it_uses_that(self):
        self.apt()
        self.command("id", "echo 1000")
        self.command("sudo", 'echo sudo >>"$STATE/asked"\nexec "$@"')
        self.assertEqual(self.setup_of().returncode, 0)
        self.assertIn("sudo", self.asked())

    def test_another_system_lacks_packages(self):
        self.apt(install=(100, "E: Unable to locate package clang-14\nE: Package 'cmake' has no installation candidate"))
        self.fails_with("has no package clang-14 cmake", "Debian 12", "docker build -t trainyard .")

    def test_a_system_without_apt_get(self):
        self.fails_with("has no apt-get", "packages.txt", "docker build -t trainyard .")

    def test_an_interrupted_installation(self):
        self.apt(install=(100, "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."))
        self.fails_with("as root, type: dpkg --configure -a")

    def test_any_other_failure_has_apts_reason(self):
        self.apt(install=(100, "E: You don't have enough free space in /var/cache/apt/archives/."))
        self.fails_with("could not install g++ cmake", "enough free space")


class FrontDoor(unittest.TestCase):
    def dev(self, *arguments):
        return subprocess.run([SOURCE / "dev", *arguments], check=False, capture_output=True, text=True)

    def test_help_lists_the_verbs_with_what_each_takes(self):
        alone = self.dev()
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        for line in ("test [--fast|--slow] ", "demo ", "release VERSION [--dry-run] ", "reference FOLDER "):
            self.assertIn(f"\n  {line}", alone.stdout)
        for word in ("help", "-h", "--help"):
            self.assertEqual(self.dev(word).stdout, alone.stdout)

    def test_prove_lists_what_can_be_proved(self):
        alone = self.dev("prove")
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        for line in ("faults [OPTION...] ", "kills [N] ", "gpu [OPTION...] ", "start "):
            self.assertIn(f"\n  {line}", alone.stdout)
        for word in ("help", "-h", "--help"):
            self.assertEqual(self.dev("prove", word).stdout, alone.stdout)

    def test_a_mistyped_verb_is_named_before_the_list(self):
        for word in ("tset", "te", "-x", "test [", "."):
            result = self.dev(word)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.splitlines()[0], f"dev: there is no verb '{word}'")
            self.assertIn("\n  test [--fast|--slow] ", result.stderr)
        for word in ("fault", "gpu [", "test"):
            result = self.dev("prove", word)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertEqual(result.stderr.splitlines()[0], f"dev: there is no proof '{word}'")
            self.assertIn("\n  kills [N] ", result.stderr)

    def test_each_verb_has_a_help_that_sets_nothing_up(self):
        verbs = [line.split()[0] for line in self.dev().stdout.splitlines()[1:]]
        proofs = [line.split()[0] for line in self.dev("prove").stdout.splitlines()[1:]]
        self.assertGreater(len(verbs), 10)
        self.assertGreater(len(proofs), 7)
        for words in [(verb,) for verb in verbs] + [("prove", proof) for proof in proofs]:
            if words in (("release",), ("prove", "train"), ("prove", "gpu")):  # of their own
                continue
            result = self.dev(*words, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""), words)
            self.assertTrue(result.stdout.startswith(f"usage: ./dev {' '.join(words)} "), result.stdout)


if __name__ == "__main__":
    unittest.main()
