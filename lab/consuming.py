"""Empties a queue and compares what came with what was accepted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.broker_http import BrokerConnection, path_of

_PAUSE_SECONDS = 0.2
_SHOWN = 10


class StatusError(OSError):
    """The broker answered with another HTTP status than the one for a success."""

    def __init__(self, what: str, status: int, answer: Any) -> None:
        super().__init__(f"{what} was answered with {status}: {answer}")
        self.status = status


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """Pop and acknowledge as one consumer group until all expected messages came and the queue is empty.

    At the latest after `seconds`. The group reads the queue from its beginning, also when it is new. With `settle`
    seconds it goes on listening that long after the last expected message, to see duplicates that come late.
    """

    url: str
    queue: str
    group: str
    seconds: float
    batch: int = 200
    partitions: int = 100
    wait_ms: int = 1000
    lease_seconds: int = 60
    settle_seconds: float = 0.0
    token: str = ""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What came. missing and foreign are numbers, with the first few transactionIds beside them."""

    received: int
    unique: int
    duplicates: int
    missing: int
    foreign: int
    unacknowledged: int
    errors: int
    seconds: float
    missing_ids: list[str]
    foreign_ids: list[str]

    def as_json(self) -> dict[str, Any]:
        """For the summary line."""
        return asdict(self)


def drain(plan: DrainPlan, expected: Iterable[str], also_possible: Iterable[str] = ()) -> DrainReport:
    """Empty the queue; also_possible are transactionIds whose push got no answer: neither missing nor foreign."""
    wanted, possible = set(expected), set(also_possible)
    came: Counter[str] = Counter()
    connection = BrokerConnection(plan.url, timeout_seconds=plan.wait_ms / 1000 + 35, token=plan.token)
    start = time.monotonic()
    complete_at: float | None = None
    unacknowledged = errors = 0
    while time.monotonic() - start < plan.seconds:
        try:
            messages = pop(connection, plan)
            unacknowledged += acknowledge(connection, plan, messages).count(False) if messages else 0
        except OSError:
            errors += 1
            time.sleep(_PAUSE_SECONDS)
            continue
        came.update(str(message["transactionId"]) for message in messages)
        if complete_at is None and wanted <= came.keys():
            complete_at = time.monotonic()
        settled = complete_at is not None and time.monotonic() - complete_at >= plan.settle_seconds
        if settled and not messages:
            break
    connection.close()
    missing = sorted(wanted - came.keys())
    foreign = sorted(came.keys() - wanted - possible)
    return DrainReport(
        received=came.total(),
        unique=len(came),
        duplicates=came.total() - len(came),
        missing=len(missing),
        foreign=len(foreign),
        unacknowledged=unacknowledged,
        errors=errors,
        seconds=round(time.monotonic() - start, 3),
        missing_ids=missing[:_SHOWN],
        foreign_ids=foreign[:_SHOWN],
    )


def pop(connection: BrokerConnection, plan: DrainPlan) -> list[dict[str, Any]]:
    """One long poll: messages, none when it ended empty; OSError without an answer, StatusError for another status."""
    query: dict[str, str | int | bool] = {
        "batch": plan.batch,
        "partitions": plan.partitions,
        "wait": True,
        "timeout": plan.wait_ms,
        "consumerGroup": plan.group,
        "leaseSeconds": plan.lease_seconds,
        "subscriptionMode": "all",  # the default, `new`, would skip everything pushed before the first pop
    }
    status, answer = connection.request("GET", path_of("api", "v1", "pop", "queue", plan.queue, **query))
    if status == 204:
        return []
    if status != 200:
        raise StatusError("pop", status, answer)
    return list(answer["messages"])


def acknowledge(connection: BrokerConnection, plan: DrainPlan, messages: list[dict[str, Any]]) -> list[bool]:
    """Acknowledge each message by its own ids; whether the broker took each of them. Errors as for `pop`."""
    acknowledgments = [
        {key: message[key] for key in ("transactionId", "partitionId", "leaseId")} | {"status": "completed"}
        for message in messages
    ]
    body = {"consumerGroup": plan.group, "acknowledgments": acknowledgments}
    status, answer = connection.request("POST", path_of("api", "v1", "ack", "batch"), body)
    if status != 200:
        raise StatusError("ack", status, answer)
    return [bool(result["success"]) for result in answer]


def depth(url: str, queue: str, group: str = "", token: str = "") -> dict[str, Any]:
    """The broker's own count of what waits in a queue (for a group); OSError when it refuses."""
    connection = BrokerConnection(url, keep=False, timeout_seconds=10, token=token)
    path = path_of("api", "v1", "resources", "queues", queue, "depth", group=group)
    status, answer = connection.request("GET", path)
    if status != 200:
        raise OSError(f"depth of {queue} was answered with {status}: {answer}")
    return dict(answer)


def read_ids(path: Path | None) -> list[str]:
    """TransactionIds of a record file; none without a file."""
    return path.read_text().split() if path is not None else []
