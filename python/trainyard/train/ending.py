# SPDX-License-Identifier: Apache-2.0
"""How this process ends: in order, or with an error."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

_real_exit = sys.exit
_status: Any = None  # of the last sys.exit()


def _exit(status: Any = None, /) -> NoReturn:
    global _status
    _status = status
    _real_exit(status)


def watch() -> None:
    """Remembers from now on with what the script calls sys.exit(). May be called again."""
    # The interpreter tells nobody with which status it ends, atexit handlers neither.
    if sys.exit is _real_exit:
        sys.exit = _exit


def is_in_order() -> bool:
    """Asked at the process's exit: neither an uncaught exception nor sys.exit() with an error.

    Not seen is `raise SystemExit(1)` in the script's own words.
    """
    # The interpreter sets last_type when it prints an uncaught exception, whatever excepthook is.
    return getattr(sys, "last_type", None) is None and _status in (None, 0)
