"""Load on a cluster of the node while a test does something to it: see ``tests.load``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import cache
from tests.support.node_clusters import Cluster
from tests.support.waiting import wait_until

_START_SECONDS = 60
_END_SECONDS = 60  # beyond the longest poll and the final wait


@dataclass(slots=True)
class Load:
    """A load that runs in the node's network. ``report`` is there once it has finished; see ``tests.load.running``."""

    folder: Path
    process: subprocess.Popen[bytes]
    longest_end_seconds: float
    report: dict[str, Any]

    def wait_started(self) -> None:
        """Return when the first messages were accepted; AssertionError with its output when it ended instead."""
        wait_until("the load to start", lambda: self.accepted_so_far() or self._has_ended(), _START_SECONDS)
        assert self.accepted_so_far(), self.output()

    def accepted_so_far(self) -> int:
        """How many messages brokers have accepted until now."""
        file = self.folder / "accepted"
        return file.read_text().count("\n") if file.exists() else 0

    def output(self) -> str:
        """What the program has printed."""
        return (self.folder / "output").read_text(errors="replace")

    def finish(self) -> dict[str, Any]:
        """End the producing, wait until the consumers have everything (or gave up), and return the report."""
        if not self.report:
            # The program makes this file when it listens to signals.
            wait_until("the load to run", lambda: (self.folder / "accepted").exists() or self._has_ended())
            if not self._has_ended():
                self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=self.longest_end_seconds)
            assert self.process.returncode == 0, self.output()
            self.report.update(json.loads((self.folder / "report.json").read_text()))
        return self.report

    def abandon(self) -> None:
        """End it now, without a report."""
        self.process.kill()
        self.process.wait(timeout=_END_SECONDS)

    def _has_ended(self) -> bool:
        return self.process.poll() is not None


@contextmanager
def loading(
    cluster: Cluster,
    folder: Path,
    *,
    seconds: int,
    push_service: str = "orders-push",
    pop_service: str = "orders",
    queue: str = "q",
    group: str = "g",
    **options: Any,
) -> Iterator[Load]:
    """Load through two Services of the cluster's namespace while the body runs, at most so many seconds.

    options are those of ``python -m tests.load`` with underscores (``poll_seconds=20``, ``connections="half"``);
    ``push_url`` and ``pop_url`` replace the Services. Leaving the body finishes the load, an exception ends it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    urls = {"push_url": cluster.url(push_service), "pop_url": cluster.url(pop_service)}
    given = {**urls, "queue": queue, "group": group, "folder": folder, "seconds": seconds, **options}
    argv = [sys.executable, "-m", "tests.load"]
    for name, value in given.items():
        argv += [f"--{name.replace('_', '-')}", str(value)]
    with (folder / "output").open("wb") as output:
        process = cluster.node.popen_inside(argv, cwd=cache.CHECKOUT, stdout=output, stderr=subprocess.STDOUT)
    waits = float(options.get("finish_seconds", 120)) + float(options.get("poll_seconds", 30)) + 15
    longest = waits + float(options.get("push_timeout", 40)) * (1 + int(options.get("retries", 0))) + _END_SECONDS
    load = Load(folder, process, longest, {})
    try:
        yield load
        load.finish()
    finally:
        if process.poll() is None:
            load.abandon()
