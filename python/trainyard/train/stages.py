# SPDX-License-Identifier: Apache-2.0
"""Turns: jobs that share GPUs run each stage of an iteration while the others run another one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Callable, Iterator, Optional

from . import protocol
from .errors import StageError
from .supervisor import Supervisor


class Turns:
    """The stages of one worker. At most one is under way."""

    def __init__(
        self, supervisor: Supervisor, patience: float, note: Callable[[str], None]
    ) -> None:
        """`patience`: seconds that a turn is waited for; `note` tells the people who look."""
        self._supervisor = supervisor
        self._patience = patience
        self._note = note
        self._off = False  # a turn has not come in time
        self._open: Optional[str] = None
        self._told = False  # the supervisor knows of the open stage

    @property
    def open_stage(self) -> Optional[str]:
        """The stage that has begun and not ended."""
        return self._open

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A stage, from its turn to the end of the `with`. Raises StageError."""
        self.begin(name)
        try:
            yield
        finally:
            self.end(name)

    def begin(self, name: str) -> None:
        """Waits for the turn. Raises StageError for an unknown name or another open stage."""
        if name not in protocol.STAGES:
            raise StageError(f"unknown stage {name!r}; the stages are {', '.join(protocol.STAGES)}")
        if self._open is not None:
            raise StageError(
                f"stage {name!r} begins, but stage {self._open!r} has not ended: end it before, "
                f"by leaving its `with job.stage({self._open!r})`"
            )
        self._open = name
        self._told = False
        if self._off or not self._supervisor.is_there or self._supervisor.version() < 1:
            return
        self._told = True
        if not self._supervisor.ask_turn(name, self._patience) and self._supervisor.is_there:
            self._off = True
            self._note(
                f"no turn for stage {name!r} within {self._patience:g} s: "
                "the training goes on without turns"
            )

    def end(self, name: str) -> None:
        """Ends the stage; another name than the open one's is passed over."""
        if self._open != name:
            return
        self._open = None
        if self._told:
            self._supervisor.say(f"end {name}")

    def check_ended(self) -> None:
        """Raises StageError where a stage is still open at the end of an iteration."""
        if self._open is not None:
            raise StageError(
                f"stage {self._open!r} has not ended by the end of the iteration: other jobs wait "
                f"for its end; leave its `with job.stage({self._open!r})` before the next step"
            )
