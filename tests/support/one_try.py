"""What clients that try once saw while brokers left, and at which broker's departure they saw it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.support.pod_lives import PodLife

# The operator takes a broker out of the push Service this long before its pod is deleted, with room for a busy machine.
BEFORE_SECONDS = 10
# A client may notice only at its next message that a connection was closed.
AFTER_SECONDS = 10

Trouble = tuple[float, str]  # second of the load, kind


@dataclass(frozen=True)
class OneTry:
    """Trouble of pushes by the departure in which it happened, and the rest, which belongs to none."""

    by_departure: tuple[tuple[str, tuple[Trouble, ...]], ...]  # pod name, in the order of the departures
    apart: tuple[Trouble, ...]

    @property
    def most_at_one_departure(self) -> int:
        return max((len(troubles) for _, troubles in self.by_departure), default=0)

    def as_json(self) -> dict[str, Any]:
        """For the figures."""
        return {"by_departure": [[pod, *troubles] for pod, troubles in self.by_departure], "apart": list(self.apart)}


def assign(report: dict[str, Any], departures: Sequence[PodLife]) -> OneTry:
    """Give each push of a load report that failed to the broker that was leaving then; the latest one, if several."""
    start = datetime.fromisoformat(report["started_at"]).timestamp()
    found: list[list[Trouble]] = [[] for _ in departures]
    apart: list[Trouble] = []
    for second, who, kind in report["errors"]:
        if who != "push":
            continue
        leaving = [troubles for life, troubles in zip(departures, found, strict=True) if _covers(life, start + second)]
        (leaving[-1] if leaving else apart).append((second, kind))
    pairs = zip(departures, found, strict=True)
    return OneTry(tuple((life.name, tuple(troubles)) for life, troubles in pairs), tuple(apart))


def _covers(life: PodLife, moment: float) -> bool:
    assert life.leaving_at is not None
    end = life.gone_at if life.gone_at is not None else float("inf")
    return life.leaving_at - BEFORE_SECONDS <= moment <= end + AFTER_SECONDS


def drain_seconds(departures: Sequence[PodLife]) -> list[float]:
    """How long each pod that is gone took from its deletion to its end."""
    pairs = ((life.leaving_at, life.gone_at) for life in departures)
    return [round(gone - leaving, 1) for leaving, gone in pairs if gone is not None and leaving is not None]
