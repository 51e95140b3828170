"""One disturbance under the same load, with the operator's cluster and with the plain StatefulSet."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.databases import Database
from tests.support.evictions import evict_patiently
from tests.support.loading import Load, loading
from tests.support.node_clusters import PODS, Cluster, spec_for
from tests.support.one_try import assign, drain_seconds
from tests.support.plain import INDEX, PlainCluster
from tests.support.pod_lives import PodLife, PodLives
from tests.support.waiting import wait_until

POLL_SECONDS = 90
# Long enough for three brokers that each wait for a poll, on a busy machine; the load ends with the disturbance.
LOAD_SECONDS = 1200
LOAD_SECONDS_AFTER = 10
PUSHES = {"rate": 50, "producers": 6, "connections": "half", "retries": 0}
# Its queue gets a message each 20 s, so that most polls of it wait their full time, at every broker.
QUIET = {"rate": 0.05, "producers": 1, "connections": "new", "retries": 20, "consumers": 12}


@dataclass(frozen=True)
class Column:
    """How one of the two is deployed, reached, changed and removed."""

    cluster: Cluster | PlainCluster
    push_service: str
    pop_service: str
    label: str  # whose value tells the brokers apart

    def broker_of(self, pod: dict[str, Any]) -> str | None:
        found: str | None = pod["metadata"].get("labels", {}).get(self.label)
        return found

    def serving(self) -> dict[str, dict[str, Any]]:
        """Broker pods that are Ready and not leaving, by broker."""
        pods = [pod for pod in self.cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
        ready = [pod for pod in pods if {"type": "Ready", "status": "True"} in _short_conditions(pod)]
        return {self.broker_of(pod) or "": pod for pod in ready}


def _short_conditions(pod: dict[str, Any]) -> list[dict[str, str]]:
    return [{"type": item["type"], "status": item["status"]} for item in pod["status"].get("conditions", [])]


def of_operator(cluster: Cluster) -> Column:
    return Column(cluster, "orders-push", "orders", PODS)


def of_plain(cluster: PlainCluster) -> Column:
    return Column(cluster, cluster.name, cluster.name, INDEX)


def long_polls(database: Database, **changes: Any) -> dict[str, Any]:
    """The spec of a cluster whose clients poll as long as this load does."""
    broker = {"maxPopTimeout": f"{POLL_SECONDS}s", **changes}
    return spec_for(database, broker=broker)


def measured(
    column: Column, disturb: Callable[[], object], folder: Path, *, poll_seconds: int = POLL_SECONDS
) -> dict[str, Any]:
    """Disturb it under load and tell what clients saw: pushes that try once, polls, messages, containers, seconds."""
    folder.mkdir()
    namespace = column.cluster.kubectl.namespace
    with PodLives(column.cluster.node, namespace, column.broker_of) as pods, ExitStack() as loads:
        busy = loads.enter_context(_load(column, folder / "busy", "busy", poll_seconds=poll_seconds, **PUSHES))
        quiet = loads.enter_context(_load(column, folder / "quiet", "quiet", poll_seconds=poll_seconds, **QUIET))
        busy.wait_started()
        quiet.wait_started()
        began = time.monotonic()
        disturb()
        seconds = time.monotonic() - began
        departures = pods.departures()
        time.sleep(LOAD_SECONDS_AFTER)  # the load goes on a little, so that late troubles are seen
        with ThreadPoolExecutor() as both:  # each waits for its last polls
            reports = dict(zip(("busy", "quiet"), both.map(Load.finish, (busy, quiet)), strict=True))
        ended = {"killed": pods.killed(), "restarts": pods.restarts()}
    return {"seconds": round(seconds, 1), **_summary(reports, departures), **ended}


def _load(column: Column, folder: Path, queue: str, **options: Any) -> Any:
    return loading(
        column.cluster,
        folder,
        seconds=LOAD_SECONDS,
        push_service=column.push_service,
        pop_service=column.pop_service,
        queue=f"{column.cluster.name}-{queue}",
        **{"consumers": 4, "finish_seconds": 180, **options},
    )


def _summary(reports: dict[str, dict[str, Any]], departures: list[PodLife]) -> dict[str, Any]:
    pushes = reports["busy"]["pushed"]
    tried = assign(reports["busy"], departures)
    return {
        "pushes": {key: pushes[key] for key in ("attempted", "accepted", "refused", "errors", "failed", "kinds")},
        "troubles": tried.as_json(),
        "most_troubles_at_one_departure": tried.most_at_one_departure,
        "polls": _added(reports, "polls"),
        "acks": _added(reports, "acks"),
        "messages": _added(reports, "messages"),
        "departures": [life.broker for life in departures],
        "drain_seconds": drain_seconds(departures),
    }


def _added(reports: dict[str, dict[str, Any]], part: str) -> dict[str, Any]:
    """The numbers of both loads together; the longest of a length."""
    both = [report[part] for report in reports.values()]
    numbers = [key for key, value in both[0].items() if isinstance(value, int | float)]
    return {key: (max if "longest" in key else sum)(each[key] for each in both) for key in numbers}


def not_accepted(summary: dict[str, Any]) -> int:
    """How many pushes that tried once were not accepted."""
    return int(summary["pushes"]["attempted"] - summary["pushes"]["accepted"])


def drain(column: Column) -> int:
    """Evict each broker, each after the one before is back; returns how often the budget refused."""
    refused = 0
    for broker in sorted(column.serving()):
        pod = column.serving()[broker]
        refused += evict_patiently(column.cluster.kubectl, pod)
        _wait_replaced(column, broker, pod["metadata"]["uid"])
    return refused


def _wait_replaced(column: Column, broker: str, uid: str) -> None:
    def replaced() -> bool:
        found = column.serving().get(broker)
        return found is not None and found["metadata"]["uid"] != uid

    wait_until(f"broker {broker} to be back", replaced, seconds=400, pause_seconds=1)
