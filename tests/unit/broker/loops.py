"""Runs a coroutine the way the operator's loop does, and looks at what it left behind."""

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
# Far above every time limit in these tests and far below what a hang without a limit takes.
LONG_SECONDS = 20.0

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of ``work``; fail when it takes long or leaves a task behind."""

    async def watched() -> Result:
        began = time.monotonic()
        result = await work
        assert time.monotonic() - began < LONG_SECONDS
        await _wait_for_others_to_end()
        return result

    return asyncio.run(watched())


async def _wait_for_others_to_end() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, left = await asyncio.wait(others, timeout=LONG_SECONDS / 10)
        assert not left, f"left behind: {left}"
