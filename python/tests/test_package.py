# SPDX-License-Identifier: Apache-2.0
"""The package: what it imports, its version, its types, and that it is documented."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from conftest import TIMEOUT

import trainyard
import trainyard.train
from trainyard.train import protocol

PACKAGE = Path(trainyard.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_takes_the_standard_library_only() -> None:
    output = run(
        "import sys\n"
        "import trainyard.train\n"
        "from trainyard.train import Checkpoint, DataLoader, Job\n"
        "job = Job(); job.progress(1); job.should_stop()\n"
        "print([name for name in ('torch', 'numpy') if name in sys.modules])"
    )
    assert output == "[]\n"


def test_a_loader_works_where_there_is_no_torch() -> None:
    output = run(
        "import sys\n"
        "sys.modules['torch'] = None; sys.modules['torch.utils.data'] = None\n"
        "from trainyard.train import DataLoader, Job\n"
        "loader = DataLoader(list(range(7)), 3, Job(), workers=1, seed=1)\n"
        "print(sorted(sample for batch in loader.steps(1) for sample in batch))\n"
        "loader.close()"
    )
    assert output == "[0, 1, 2, 3, 4, 5, 6]\n"


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", trainyard.__version__)
    try:
        installed = metadata.version("trainyard")
    except metadata.PackageNotFoundError:
        pytest.skip("trainyard is not installed")
    assert installed == trainyard.__version__


def test_the_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_file_is_short_and_says_its_licence(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0] == "# SPDX-License-Identifier: Apache-2.0"
    assert len(lines) <= 400
    assert max(map(len, lines)) <= 100


def test_all_that_is_public_is_documented() -> None:
    for name in trainyard.train.__all__:
        public = getattr(trainyard.train, name)
        assert inspect.getdoc(public), name
        members = vars(public).items() if inspect.isclass(public) else []
        for member, value in members:
            documented = inspect.isfunction(value) or isinstance(value, property)
            if documented and not member.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{member}"


@pytest.mark.skipif(not DOCS.is_dir(), reason="without the repository's documentation")
def test_the_documented_protocol_is_the_one_that_is_spoken() -> None:
    text = (DOCS / "job-protocol.md").read_text()
    assert f"version of the protocol is {protocol.VERSION}" in text
    for stage in protocol.STAGES:
        assert f"`{stage}`" in text
    for word in ("hello", "stage", "end", "note", "go", "progress", "checkpoint", "metric"):
        assert re.search(rf"^\| `{word}[ `]", text, re.MULTILINE), word
    assert f"at most {protocol.MAX_LINE} bytes" in text
    assert f"{protocol.MAX_NOTE} bytes" in text


@pytest.mark.skipif(not DOCS.is_dir(), reason="without the repository's documentation")
def test_the_documentation_names_each_public_class() -> None:
    text = (DOCS / "pytorch.md").read_text()
    for name in trainyard.train.__all__:
        assert name in text, name
