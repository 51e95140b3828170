"""Waiting for a condition instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def wait_until(what: str, condition: Callable[[], Result], seconds: float = 60, pause_seconds: float = 0.2) -> Result:
    """Return the first truthy result of the condition; AssertionError with the last one after that many seconds.

    Exceptions of the condition are not swallowed: a condition that may ask too early says so by returning False.
    """
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}; the last answer was {result!r}")
        time.sleep(pause_seconds)
