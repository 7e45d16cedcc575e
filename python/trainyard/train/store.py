# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on disk: each is a folder that appears as a whole, with a digest of its content.

    checkpoint-000000001200.1/state.pt        what torch.load reads
                              manifest.json   format, library, iterations, bytes, sha256

The number behind the dot tells apart checkpoints of the same iteration.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Optional

from .. import __version__
from .errors import MismatchError

FORMAT = 1
_NAME = re.compile(r"checkpoint-(\d{12})\.(\d+)")
_CHUNK = 1 << 20


class Damaged(Exception):
    """A checkpoint is not what was written. The message says in what way."""


@dataclass(frozen=True, order=True)
class Entry:
    """A checkpoint's name. Later ones are greater."""

    iterations: int
    repetition: int

    @property
    def name(self) -> str:
        """The folder's."""
        return f"checkpoint-{self.iterations:012d}.{self.repetition}"


class Store:
    """The checkpoints in a folder. One process writes."""

    def __init__(self, folder: Path, keep: int) -> None:
        """`keep`: how many of the latest stay. The folder need not exist yet."""
        self._folder = folder
        self._keep = keep

    def entries(self) -> list[Entry]:
        """The checkpoints, the latest first, damaged ones included."""
        if not self._folder.is_dir():
            return []
        matches = [_NAME.fullmatch(path.name) for path in self._folder.iterdir()]
        found = [Entry(int(match[1]), int(match[2])) for match in matches if match]
        return sorted(found, reverse=True)

    def state_path(self, entry: Entry) -> Path:
        """The file of the state."""
        return self._folder / entry.name / "state.pt"

    def digest(self, entry: Entry) -> Optional[str]:
        """What the manifest says; None: it cannot be read."""
        try:
            return str(self._manifest(entry)["sha256"])
        except (Damaged, MismatchError):
            return None

    def verify(self, entry: Entry) -> str:
        """Reads the state once; its digest. Raises Damaged, or MismatchError for a later format."""
        manifest = self._manifest(entry)
        digest, size = hashlib.sha256(), 0
        try:
            with self.state_path(entry).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
        except OSError as error:
            raise Damaged(f"state.pt: {error.strerror}") from error
        if size != manifest["bytes"]:
            raise Damaged(f"state.pt has {size} bytes instead of {manifest['bytes']}")
        if digest.hexdigest() != manifest["sha256"]:
            raise Damaged("state.pt is not what was written (SHA-256)")
        return digest.hexdigest()

    def set_aside(self, entry: Entry) -> None:
        """Renames a damaged checkpoint; it stays until the next one is written."""
        source = self._folder / entry.name
        source.rename(self._folder / f"damaged-{entry.name}")

    def write(self, iterations: int, save: Callable[[BinaryIO], None]) -> Entry:
        """Writes a checkpoint; on return it is on disk, and older ones than `keep` are gone.

        Raises OSError; all earlier checkpoints are there then.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._remove_drafts()
        same = [entry.repetition for entry in self.entries() if entry.iterations == iterations]
        entry = Entry(iterations, max(same, default=0) + 1)
        draft = self._folder / f".draft-{entry.name}"
        try:
            draft.mkdir()
            manifest = _write_state(draft / "state.pt", save)
            manifest.update(format=FORMAT, library=__version__, iterations=iterations)
            _write_file(draft / "manifest.json", json.dumps(manifest).encode())
            _sync_folder(draft)
            draft.rename(self._folder / entry.name)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        _sync_folder(self._folder)
        self._prune()
        return entry

    def _manifest(self, entry: Entry) -> dict[str, Any]:
        path = self._folder / entry.name / "manifest.json"
        try:
            manifest = json.loads(path.read_bytes())
            format_, library = int(manifest["format"]), str(manifest["library"])
            manifest["bytes"], manifest["sha256"]
        except OSError as error:
            raise Damaged(f"manifest.json: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"manifest.json is not one ({error})") from error
        if format_ > FORMAT:
            raise MismatchError(
                f"{path.parent} was written by trainyard {library}, in format {format_}; this is "
                f"{__version__}, which reads up to format {FORMAT}: install that version"
            )
        checked: dict[str, Any] = manifest
        return checked

    def _remove_drafts(self) -> None:
        """What a writer that was killed has left."""
        for pattern in (".draft-*", ".old-*"):
            for path in self._folder.glob(pattern):
                shutil.rmtree(path, ignore_errors=True)

    def _prune(self) -> None:
        for entry in self.entries()[self._keep :]:
            # By another name first, so that half a checkpoint never has the name of a whole one.
            old = self._folder / f".old-{entry.name}"
            try:
                (self._folder / entry.name).rename(old)
            except OSError:
                continue
            shutil.rmtree(old, ignore_errors=True)
        for path in self._folder.glob("damaged-checkpoint-*"):
            shutil.rmtree(path, ignore_errors=True)


class _Hashing:
    """A file for torch.save that counts and digests. It keeps an error until it is asked for:
    torch's writer in C++ would hide it behind one of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.error: Optional[OSError] = None
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, content: Any) -> int:
        view = memoryview(content).cast("B")
        if self.error is None:
            try:
                self._file.write(view)
            except OSError as error:
                self.error = error
            self.digest.update(view)
            self.size += len(view)
        return len(view)

    def flush(self) -> None:
        """torch.save calls it; the file is flushed at the end."""


def _write_state(path: Path, save: Callable[[BinaryIO], None]) -> dict[str, Any]:
    with path.open("wb") as file:
        hashing = _Hashing(file)
        save(hashing)  # type: ignore[arg-type]
        if hashing.error is not None:
            raise hashing.error
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": hashing.size, "sha256": hashing.digest.hexdigest()}


def _write_file(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
