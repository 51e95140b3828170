"""Bounded load on brokers: pushes single messages at a rate and says what became of each."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.broker_http import BrokerConnection, NoAnswerError, NotConnectedError, path_of

_ACCEPTED = ("queued", "buffered", "duplicate")
_RETRY_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class PushPlan:
    """What to push: `count` messages, or as many as `rate` gives in `seconds`; whichever ends first.

    rate is in messages per second for all clients together, 0 as fast as they can. Of the clients, kept ones hold one
    connection each, the others open one per message. Each message has a transactionId of its own, which a retry keeps.
    """

    url: str
    queue: str
    count: int = 0
    rate: float = 0.0
    seconds: float = 0.0
    clients: int = 4
    kept_clients: int | None = None  # None: all
    partitions: int = 1
    retries: int = 0
    payload_bytes: int = 100
    timeout_seconds: float = 40.0
    token: str = ""
    record: Path | None = None  # takes accepted transactionIds, one a line, as they are accepted
    record_unknown: Path | None = None  # takes those that the broker may or may not have taken

    def __post_init__(self) -> None:
        """Refuse a plan without an end: ValueError."""
        if self.count <= 0 and self.seconds <= 0:
            raise ValueError("a push needs a count or a number of seconds, or it would never end")


@dataclass(frozen=True, slots=True)
class PushReport:
    """What became of the messages. attempted = accepted + failed + refused + errors."""

    attempted: int
    accepted: int  # 201 with queued, buffered or duplicate
    queued: int
    buffered: int
    duplicate: int
    failed: int  # 201, but the item says failed or error
    refused: int  # no connection
    errors: int  # connected, then no answer or another status than 201
    retried: int
    latency_ms_p50: float  # of answered 201
    latency_ms_p95: float
    latency_ms_max: float
    longest_silence_seconds: float  # longest time without an accepted push, from the first attempt to the end
    seconds: float
    kinds: dict[str, int] = field(default_factory=dict)  # refusals and errors by their cause

    def as_json(self) -> dict[str, Any]:
        """For the summary line."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of one message after its last try: outcome is a count's name in `PushReport`, kind its cause."""

    transaction: str
    outcome: str
    kind: str
    maybe_stored: bool  # not accepted, but some try got no answer


class Pusher:
    """Runs one plan; `stop` from another thread or a signal handler ends it early, with a complete report.

    on_end hears of each message's end, from the client's thread.
    """

    def __init__(self, plan: PushPlan, on_end: Callable[[Pushed], None] | None = None) -> None:
        self._plan = plan
        self._on_end = on_end
        self._run = uuid.uuid4().hex[:12]
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._next = 0
        self._outcomes: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._latencies: list[float] = []
        self._accepted_at: list[float] = []
        self._start = 0.0

    def stop(self) -> None:
        """Let the messages in flight end and begin no others."""
        self._stop.set()

    def run(self) -> PushReport:
        """Push until the plan is fulfilled; raises nothing because of a broker."""
        plan = self._plan
        for file in (plan.record, plan.record_unknown):
            if file is not None:
                file.write_text("")
        self._start = time.monotonic()
        kept = plan.clients if plan.kept_clients is None else plan.kept_clients
        threads = [threading.Thread(target=self._client, args=(n < kept,), daemon=True) for n in range(plan.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._report(time.monotonic())

    def _client(self, keep: bool) -> None:
        connection = BrokerConnection(self._plan.url, keep, self._plan.timeout_seconds, token=self._plan.token)
        while (number := self._take()) is not None:
            self._push(connection, number)
        connection.close()

    def _take(self) -> int | None:
        """Number of the next message when its time has come, None at the end."""
        plan = self._plan
        with self._lock:
            number = self._next
            if plan.count and number >= plan.count:
                return None
            self._next += 1
        due = self._start + (number / plan.rate if plan.rate else 0.0)
        end = self._start + plan.seconds if plan.seconds else float("inf")
        if due >= end or time.monotonic() >= end:
            return None
        return None if self._stop.wait(max(0.0, due - time.monotonic())) else number

    def _push(self, connection: BrokerConnection, number: int) -> None:
        transaction = f"{self._run}-{number}"
        unknown = False
        for attempt in range(self._plan.retries + 1):
            if attempt:
                self._count("retried")
                time.sleep(_RETRY_PAUSE_SECONDS)  # also after a stop: a message in flight keeps all its tries
            outcome, kind = self._attempt(connection, transaction, number)
            unknown = unknown or outcome == "errors"
            if outcome in _ACCEPTED:
                break
        with self._lock:
            self._outcomes[outcome] += 1
            if kind:
                self._kinds[kind] += 1
            if outcome in _ACCEPTED:
                self._accepted_at.append(time.monotonic())
                _append(self._plan.record, transaction)
            elif unknown:
                _append(self._plan.record_unknown, transaction)
        if self._on_end is not None:
            self._on_end(Pushed(transaction, outcome, kind, unknown and outcome not in _ACCEPTED))

    def _attempt(self, connection: BrokerConnection, transaction: str, number: int) -> tuple[str, str]:
        item = {
            "queue": self._plan.queue,
            "partition": str(number % self._plan.partitions),
            "payload": {"number": number, "filler": "x" * self._plan.payload_bytes},
            "transactionId": transaction,
        }
        began = time.monotonic()
        try:
            status, answer = connection.request("POST", path_of("api", "v1", "push"), {"items": [item]})
        except NotConnectedError as error:
            return "refused", str(error)
        except NoAnswerError as error:
            return "errors", str(error)
        if status != 201:
            return "errors", f"HTTP {status}"
        with self._lock:
            self._latencies.append((time.monotonic() - began) * 1000)
        said = str(answer[0]["status"])
        return (said, "") if said in _ACCEPTED else ("failed", f"item {said}")

    def _count(self, outcome: str) -> None:
        with self._lock:
            self._outcomes[outcome] += 1

    def _report(self, end: float) -> PushReport:
        seen = self._outcomes
        accepted = sum(seen[outcome] for outcome in _ACCEPTED)
        moments = [self._start, *sorted(self._accepted_at), end]
        return PushReport(
            attempted=accepted + seen["failed"] + seen["refused"] + seen["errors"],
            accepted=accepted,
            queued=seen["queued"],
            buffered=seen["buffered"],
            duplicate=seen["duplicate"],
            failed=seen["failed"],
            refused=seen["refused"],
            errors=seen["errors"],
            retried=seen["retried"],
            latency_ms_p50=percentile(self._latencies, 50),
            latency_ms_p95=percentile(self._latencies, 95),
            latency_ms_max=percentile(self._latencies, 100),
            longest_silence_seconds=round(max(b - a for a, b in itertools.pairwise(moments)), 3),
            seconds=round(end - self._start, 3),
            kinds=dict(self._kinds),
        )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least this share of the values does not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return round(ordered[max(0, int(rank) - 1)], 2)


def _append(file: Path | None, line: str) -> None:
    if file is not None:
        with file.open("a") as opened:
            opened.write(f"{line}\n")


def push(plan: PushPlan) -> PushReport:
    """Push by the plan and report."""
    return Pusher(plan).run()
