"""The lives of a namespace's broker pods, by one kept watch: when each was Ready, left, ended, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from lab.api_client import ApiClient
from lab.node import Node

WATCH_SECONDS = 3600
KILLED = 137  # exit code of a container that SIGKILL ended

BrokerOf = Callable[[dict[str, Any]], str | None]


@dataclass
class PodLife:
    """What was seen of one pod; moments are seconds of the wall clock, None while they have not come."""

    name: str
    broker: str
    ready_at: float | None = None
    leaving_at: float | None = None
    gone_at: float | None = None
    exits: dict[str, set[int]] = field(default_factory=dict)  # exit codes by container
    restarts: int = 0  # of its containers, in place

    def take(self, kind: str, pod: dict[str, Any], now: float) -> None:
        """Note what an event of the watch tells."""
        if self.ready_at is None and _is_ready(pod):
            self.ready_at = now
        if self.leaving_at is None and "deletionTimestamp" in pod["metadata"]:
            self.leaving_at = now
        if kind == "DELETED":
            self.gone_at = now
            self.leaving_at = self.leaving_at or now
        self.restarts = max(self.restarts, sum(item["restartCount"] for item in _containers(pod)))
        for container, code in _exits(pod):
            self.exits.setdefault(container, set()).add(code)


class PodLives:
    """Watches while its context lasts. ``lives`` are in the order in which the pods were first seen."""

    def __init__(self, node: Node, namespace: str, broker_of: BrokerOf) -> None:
        self._client = ApiClient.from_kubeconfig(node.kubeconfig)
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._broker_of = broker_of
        self._by_uid: dict[str, PodLife] = {}
        self._done = Event()
        self._broken: BaseException | None = None
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PodLives:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        # What it did not see would look like a good end.
        assert self._broken is None, f"the watch of the pods broke: {self._broken!r}"
        assert self._thread.is_alive(), "the watch of the pods ended too early"

    @property
    def lives(self) -> list[PodLife]:
        return list(self._by_uid.values())

    def departures(self) -> list[PodLife]:
        """Pods that left, in the order in which they did."""
        return sorted((life for life in self.lives if life.leaving_at), key=lambda life: life.leaving_at or 0.0)

    def killed(self) -> list[str]:
        """Containers that SIGKILL ended, as pod/container."""
        ended = [(life.name, container, codes) for life in self.lives for container, codes in list(life.exits.items())]
        return [f"{pod}/{container}" for pod, container, codes in ended if KILLED in codes]

    def restarts(self) -> int:
        """How often a container was started again in its pod."""
        return sum(life.restarts for life in self.lives)

    def _watch(self) -> None:
        try:
            for event in self._client.watch(self._path, WATCH_SECONDS):
                if self._done.is_set():
                    return
                self._take(event["type"], event["object"])
        except (OSError, ValueError, KeyError) as error:
            self._broken = error

    def _take(self, kind: str, pod: dict[str, Any]) -> None:
        broker = self._broker_of(pod) if pod.get("kind") == "Pod" else None
        if broker is None:
            return
        meta = pod["metadata"]
        life = self._by_uid.setdefault(meta["uid"], PodLife(meta["name"], broker))
        life.take(kind, pod, time.time())


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["status"].get("initContainerStatuses", []), *pod["status"].get("containerStatuses", [])]


def _exits(pod: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for container in _containers(pod):
        for state in (container.get("state", {}), container.get("lastState", {})):
            if "terminated" in state:
                yield container["name"], state["terminated"]["exitCode"]
