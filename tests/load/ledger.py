"""What was accepted, what came, what was acknowledged: told by producers and consumers, compared at the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from lab.producing import Pushed

ACCEPTED = frozenset({"queued", "buffered", "duplicate"})
_SHOWN_IDS = 10
_SHOWN_ERRORS = 200  # of each side, so that polls refused in an outage do not crowd out a failed push


class Ledger:
    """Books of one load; every method may be called from any thread.

    A message that is popped before its push was answered is booked as such, and judged at the end only.
    """

    def __init__(self, lease_seconds: float) -> None:
        self.started_at = datetime.now(UTC)
        self._start = time.monotonic()
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._accepted: set[str] = set()
        self._maybe_stored: set[str] = set()
        self._open: set[str] = set()  # accepted and not acknowledged
        self._came: set[str] = set()
        self._in_hand: dict[str, float] = {}  # popped, ack not answered yet: when the lease ends
        self._acked: set[str] = set()
        self._unconfirmed: dict[str, float] = {}  # the ack may have been taken: when the lease ends at the latest
        self._duplicated = self._redelivered = 0
        self._errors: list[tuple[float, str, str]] = []
        self._kinds: Counter[str] = Counter()

    def second(self) -> float:
        """Seconds since the start of the load."""
        return time.monotonic() - self._start

    def pushed(self, message: Pushed) -> None:
        """Book the end of a push."""
        with self._lock:
            if message.outcome in ACCEPTED:
                self._accepted.add(message.transaction)
                if message.transaction not in self._acked:
                    self._open.add(message.transaction)
            elif message.maybe_stored:
                self._maybe_stored.add(message.transaction)
        if message.kind:
            self.trouble("push", message.kind)

    def popped(self, transactions: Sequence[str]) -> None:
        """Book what one pop brought.

        A message is duplicated when it comes though its ack was taken, or while this program still holds it. It is
        redelivered when it comes again after its lease, or after an ack that was not taken or not answered.
        """
        now = time.monotonic()
        with self._lock:
            for transaction in transactions:
                if transaction in self._acked or self._in_hand.get(transaction, 0) > now:
                    self._duplicated += 1
                elif transaction in self._came:
                    self._redelivered += 1
                self._came.add(transaction)
                self._unconfirmed.pop(transaction, None)
                self._in_hand[transaction] = now + self._lease_seconds

    def answered(self, transactions: Sequence[str], taken: Sequence[bool], *, repeated: bool) -> None:
        """Book the answer to an ack. A repeated one that is not taken says nothing: the first may have been."""
        with self._lock:
            for transaction, was_taken in zip(transactions, taken, strict=True):
                lease_end = self._in_hand.pop(transaction, time.monotonic())
                if was_taken:
                    self._acked.add(transaction)
                    self._open.discard(transaction)
                elif repeated and transaction not in self._acked:
                    self._unconfirmed[transaction] = lease_end

    def unanswered(self, transactions: Iterable[str]) -> None:
        """Book an ack whose every try got no answer."""
        with self._lock:
            for transaction in transactions:
                lease_end = self._in_hand.pop(transaction, time.monotonic())
                if transaction not in self._acked:
                    self._unconfirmed[transaction] = lease_end

    def trouble(self, who: str, kind: str) -> None:
        """Book what a client sees as an error; who is push, poll or ack."""
        with self._lock:
            self._kinds[f"{who} {kind}"] += 1
            if sum(1 for _, other, _ in self._errors if other == who) < _SHOWN_ERRORS:
                self._errors.append((round(self.second(), 2), who, kind))

    def is_settled(self, margin_seconds: float) -> bool:
        """Whether nothing more can come: all accepted are acknowledged, or would have been redelivered by now."""
        now = time.monotonic()
        with self._lock:
            return all(self._unconfirmed.get(message, now) + margin_seconds < now for message in self._open)

    def messages(self) -> dict[str, Any]:
        """The final comparison. Lost: accepted, never acknowledged, and no ack of it is without an answer."""
        with self._lock:
            lost = sorted(self._open - self._unconfirmed.keys())
            foreign = self._came - self._accepted - self._maybe_stored
            return {
                "accepted": len(self._accepted),
                "acked": len(self._acked),
                "lost": len(lost),
                "duplicated": self._duplicated,
                "redelivered": self._redelivered,
                "foreign": len(foreign),
                "maybe_stored": len(self._maybe_stored),
                "unconfirmed": len(self._unconfirmed.keys() & self._open),
                "lost_ids": lost[:_SHOWN_IDS],
                "foreign_ids": sorted(foreign)[:_SHOWN_IDS],
            }

    def errors(self) -> list[tuple[float, str, str]]:
        """The first errors of each side with the second at which they were seen, in the order of time."""
        with self._lock:
            return list(self._errors)

    def error_kinds(self) -> dict[str, int]:
        """All errors by side and kind, such as {"poll HTTP 503": 4}."""
        with self._lock:
            return dict(sorted(self._kinds.items()))
