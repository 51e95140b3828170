"""Folders of test nodes: one per test run, and no node stays behind a run that was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from lab import cache
from lab.node import Node
from lab.node_launch import Record
from lab.processes import ProcessId

_ROOT = cache.POINTERS / "test-nodes"


def own_folder(name: str) -> Path:
    """A folder for a node of this process; its name tells who owns it."""
    me = ProcessId.of(os.getpid())
    return _ROOT / f"{me.pid}-{me.start_ticks}-{me.boot_id}" / name


def remove_abandoned() -> None:
    """Stop nodes and remove folders of test runs whose process has gone."""
    for folder in _ROOT.iterdir() if _ROOT.exists() else []:
        pid, start_ticks, boot_id = folder.name.split("-", 2)
        if ProcessId(int(pid), int(start_ticks), boot_id).alive():
            continue
        for state in folder.iterdir():
            record = Record.read(state)
            if record is not None:
                Node(record).stop()
        # Two new runs may clean up the same old one.
        shutil.rmtree(folder, ignore_errors=True)


def remove(state: Path) -> None:
    """Remove a stopped node's folder, and the run's when it was the last."""
    shutil.rmtree(state, ignore_errors=True)
    with contextlib.suppress(OSError):
        state.parent.rmdir()
