"""Quarantined files moved back into the spool, where a running broker picks them up within 0.1 s."""
# pathlib costs 2 MiB in a container that is given few.
# ruff: noqa: PTH104, PTH112, PTH208

from __future__ import annotations

import os

from queen_operator.spool_keeper.contents import QUARANTINE
from queen_operator.spool_keeper.log import log
from queen_operator.spool_keeper.render import as_json

EXIT_ALL_MOVED = 0
EXIT_SOME_LEFT = 1


def requeue(directory: str) -> tuple[str, int]:
    """Move `failed/*.buf` up, oldest first, and never over a file that is there.

    Returns `{"moved": n, "left": n, "error": str|null}` and 0, or 1 when a file was left behind or nothing could be
    looked at. Safe to run twice at once: a file that is gone was moved by the other.
    """
    quarantine = f"{directory}/{QUARANTINE}"
    try:
        names = sorted(name for name in os.listdir(quarantine) if name.endswith(".buf"))
    except FileNotFoundError:
        names = []
        if not os.path.isdir(directory):
            return _answer(0, 0, f"there is no directory {directory}")
    except OSError as error:
        return _answer(0, 0, f"cannot read {quarantine}: {error.strerror}")
    moved = left = 0
    reason = ""
    for name in names:
        try:
            moved += _move(f"{quarantine}/{name}", f"{directory}/{name}")
        except OSError as error:
            left += 1
            reason = reason or f"cannot move {name}: {error.strerror}"
            log(f"left in quarantine: {name}: {error.strerror}")
    return _answer(moved, left, reason)


def _move(source: str, target: str) -> bool:
    """Rename without overwriting; False when the source is gone. Raises OSError when the name is taken.

    Looking first is enough: names carry the time of their making, so nobody makes an old one anew.
    """
    if os.path.lexists(target):
        raise FileExistsError(None, "a file of this name is in the spool")
    try:
        os.rename(source, target)
    except FileNotFoundError:
        return False
    return True


def _answer(moved: int, left: int, reason: str) -> tuple[str, int]:
    text = as_json({"moved": moved, "left": left, "error": reason or None})
    return text, EXIT_SOME_LEFT if reason else EXIT_ALL_MOVED
