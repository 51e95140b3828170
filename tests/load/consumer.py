"""A consumer as users write them: long polls, an acknowledgment for each batch, and no end because of an error."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from lab.broker_http import BrokerConnection, NoAnswerError, NotConnectedError
from lab.consuming import DrainPlan, StatusError, acknowledge, pop
from tests.load.ledger import Ledger

_PAUSE_SECONDS = 0.2
_ACK_TRIES = 5
# A broker on its way out may close a connection while a request travels to it; that poll was never open.
_OPEN_AFTER_SECONDS = 1.0


class Counts:
    """What became of the polls and acks of all consumers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._polls: Counter[str] = Counter()
        self._acks: Counter[str] = Counter()
        self._longest_seconds = 0.0

    def poll(self, ending: str, seconds: float) -> None:
        """Count a poll: answered, empty, cut, refused or errors."""
        with self._lock:
            self._polls[ending] += 1
            self._longest_seconds = max(self._longest_seconds, seconds)

    def ack(self, ending: str, count: int = 1) -> None:
        """Count messages as taken or not_taken, a request without a clear answer as one of errors."""
        with self._lock:
            self._acks[ending] += count

    def polls_as_json(self) -> dict[str, Any]:
        """For the report."""
        counts = {ending: self._polls[ending] for ending in ("answered", "empty", "cut", "refused", "errors")}
        return counts | {"longest_seconds": round(self._longest_seconds, 2)}

    def acks_as_json(self) -> dict[str, int]:
        """For the report."""
        return {ending: self._acks[ending] for ending in ("taken", "not_taken", "errors")}


class Consumer:
    """Pops and acknowledges with one kept connection until `is_over` says so between two polls."""

    def __init__(self, plan: DrainPlan, ledger: Ledger, counts: Counts, is_over: Callable[[], bool]) -> None:
        self._plan = plan
        self._ledger = ledger
        self._counts = counts
        self._is_over = is_over

    def run(self) -> None:
        """Consume; raises nothing because of a broker."""
        patience_seconds = self._plan.wait_ms / 1000 + 15
        connection = BrokerConnection(self._plan.url, timeout_seconds=patience_seconds, token=self._plan.token)
        while not self._is_over():
            messages = self._poll(connection)
            if messages is None:
                time.sleep(_PAUSE_SECONDS)
            elif messages:
                self._acknowledge(connection, messages)
        connection.close()

    def _poll(self, connection: BrokerConnection) -> list[dict[str, Any]] | None:
        """Messages, or None after an error."""
        began = time.monotonic()
        try:
            messages = pop(connection, self._plan)
        except OSError as error:
            seconds = time.monotonic() - began
            self._counts.poll(_ending(error, seconds), seconds)
            self._ledger.trouble("poll", _kind(error))
            return None
        self._counts.poll("answered" if messages else "empty", time.monotonic() - began)
        self._ledger.popped([str(message["transactionId"]) for message in messages])
        return messages

    def _acknowledge(self, connection: BrokerConnection, messages: list[dict[str, Any]]) -> None:
        """Repeat an ack that got no answer, at whichever broker answers: any broker takes the ack of any lease."""
        transactions = [str(message["transactionId"]) for message in messages]
        for attempt in range(_ACK_TRIES):
            try:
                taken = acknowledge(connection, self._plan, messages)
            except OSError as error:
                self._counts.ack("errors")
                self._ledger.trouble("ack", _kind(error))
                time.sleep(_PAUSE_SECONDS)
                continue
            self._counts.ack("taken", taken.count(True))
            self._counts.ack("not_taken", taken.count(False))
            self._ledger.answered(transactions, taken, repeated=attempt > 0)
            return
        self._ledger.unanswered(transactions)


def _ending(error: OSError, open_seconds: float) -> str:
    if isinstance(error, NotConnectedError):
        return "refused"
    if isinstance(error, NoAnswerError):
        return "cut" if open_seconds >= _OPEN_AFTER_SECONDS else "refused"
    return "errors"


def _kind(error: OSError) -> str:
    return f"HTTP {error.status}" if isinstance(error, StatusError) else str(error)
