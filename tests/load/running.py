"""One load from its plan to its report."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.consuming import DrainPlan
from lab.producing import Pusher, PushPlan, PushReport
from tests.load.consumer import Consumer, Counts
from tests.load.ledger import Ledger


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Pushes through one URL for so many seconds, consumers through another until everything came.

    rate is in messages per second of all producers together. finish_seconds bounds the wait for messages after the
    last push; 0 ends the consumers with the producers, each after its poll.
    """

    push_url: str
    pop_url: str
    queue: str
    group: str
    folder: Path
    seconds: float
    rate: float = 50.0
    producers: int = 6
    kept_producers: int = 6
    retries: int = 0
    push_timeout_seconds: float = 40.0
    consumers: int = 2
    poll_seconds: float = 30.0
    lease_seconds: int = 60
    finish_seconds: float = 120.0
    payload_bytes: int = 100
    partitions: int = 4
    # Brokers look every 5 s, with the operator's settings, for messages whose lease has ended.
    found_again_seconds: float = 10.0


class Running:
    """A load that is about to run; `stop` from another thread or a signal handler ends the producing early."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._ledger = Ledger(plan.lease_seconds)
        self._counts = Counts()
        self._pusher = Pusher(self._push_plan(), self._ledger.pushed)
        self._produced = threading.Event()
        self._give_up_at = float("inf")

    def stop(self) -> None:
        """Begin no more pushes; consumers go on as if the time was over."""
        self._pusher.stop()

    def run(self) -> dict[str, Any]:
        """Run to the end and return the report, which lies then in the folder too."""
        plan = self._plan
        plan.folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max_workers=max(1, plan.consumers)) as pool:
            consumer = Consumer(self._pop_plan(), self._ledger, self._counts, self._is_over)
            running = [pool.submit(consumer.run) for _ in range(plan.consumers)]
            try:
                pushed = self._pusher.run()
            finally:
                self._give_up_at = time.monotonic() + plan.finish_seconds
                self._produced.set()
            for one in running:
                one.result()
        report = self._report(pushed)
        _write(plan.folder / "report.json", json.dumps(report))
        return report

    def _is_over(self) -> bool:
        if not self._produced.is_set():
            return False
        return time.monotonic() >= self._give_up_at or self._ledger.is_settled(self._plan.found_again_seconds)

    def _push_plan(self) -> PushPlan:
        plan = self._plan
        return PushPlan(
            url=plan.push_url,
            queue=plan.queue,
            rate=plan.rate,
            seconds=plan.seconds,
            clients=plan.producers,
            kept_clients=plan.kept_producers,
            partitions=plan.partitions,
            retries=plan.retries,
            payload_bytes=plan.payload_bytes,
            timeout_seconds=plan.push_timeout_seconds,
            record=plan.folder / "accepted",
        )

    def _pop_plan(self) -> DrainPlan:
        plan = self._plan
        return DrainPlan(
            plan.pop_url,
            plan.queue,
            plan.group,
            seconds=plan.seconds,
            partitions=plan.partitions,
            wait_ms=int(plan.poll_seconds * 1000),
            lease_seconds=plan.lease_seconds,
        )

    def _report(self, pushed: PushReport) -> dict[str, Any]:
        return {
            "pushed": pushed.as_json(),
            "polls": self._counts.polls_as_json(),
            "acks": self._counts.acks_as_json(),
            "messages": self._ledger.messages(),
            "errors": self._ledger.errors(),
            "error_kinds": self._ledger.error_kinds(),
            "started_at": self._ledger.started_at.isoformat(timespec="milliseconds"),
            "seconds": round(self._ledger.second(), 2),
        }


def _write(file: Path, text: str) -> None:
    """Whole or not at all: a test waits for this file."""
    beside = file.with_suffix(".part")
    beside.write_text(text)
    beside.replace(file)


def kept_connections(producers: int, connections: str) -> int:
    """How many of the producers keep their connection: kept, new or half."""
    return {"kept": producers, "new": 0, "half": producers // 2}[connections]
