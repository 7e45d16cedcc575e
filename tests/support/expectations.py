# SPDX-License-Identifier: Apache-2.0
"""For tests of the program in Python: what must hold, now or soon."""

import time
from collections.abc import Callable


class TestFailure(Exception):
    pass


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise TestFailure(what)


def wait_until(what: str, is_so: Callable[[], bool], patience: float) -> None:
    """`what` says what is wrong if it does not come to be so within `patience` seconds."""
    end = time.monotonic() + patience
    while not is_so():
        expect(time.monotonic() < end, f"in vain for {patience:.0f} s: {what}")
        time.sleep(0.1)
