"""Everything that the status of a cluster said while something happened to it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

from lab.api_client import ApiClient
from tests.support.node_clusters import PODS, Cluster
from tests.support.pod_lives import PodLife, PodLives

Status = dict[str, Any]
_EVERY_SECONDS = 0.5


class StatusLog:
    """Reads the status twice a second while its context lasts; ``seen`` has each one that differs from the last."""

    def __init__(self, cluster: Cluster) -> None:
        namespace, name = quote(cluster.kubectl.namespace), quote(cluster.name)
        self._path = f"/apis/queen-operator.dev/v1alpha1/namespaces/{namespace}/queenclusters/{name}"
        self._client = ApiClient.from_kubeconfig(cluster.node.kubeconfig)
        self._done = Event()
        self._broken: Exception | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self.seen: list[Status] = []

    def __enter__(self) -> StatusLog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=60)
        # What it did not read would look like a status that never said it.
        assert self._broken is None, f"the status could not be read: {self._broken!r}"

    def where(self, holds: Callable[[Status], bool]) -> list[Status]:
        """The statuses for which a condition holds, in their order."""
        return [status for status in list(self.seen) if holds(status)]

    def said(self, *words: str) -> list[Status]:
        """The statuses whose sentence had all of these words."""
        return self.where(lambda status: all(word in status["message"] for word in words))

    def planned(self, *words: str) -> list[Status]:
        """The statuses whose plan was to wait, with all of these words."""
        return self.where(lambda status: _waits_with(status.get("plan", {}), words))

    def _run(self) -> None:
        try:
            while not self._done.wait(_EVERY_SECONDS):
                found = self._client.get(self._path)
                status = (found or {}).get("status", {})
                if "message" in status and (not self.seen or status != self.seen[-1]):
                    self.seen.append(status)
        except Exception as error:  # told at the end of the context, where the test hears it
            self._broken = error


def _waits_with(plan: dict[str, Any], words: tuple[str, ...]) -> bool:
    return plan.get("action") == "Wait" and all(word in plan.get("reason", "") for word in words)


def stalled(status: Status) -> bool:
    """Whether the status calls for a person."""
    return any(item["type"] == "Stalled" for item in status["conditions"])


def lives_of(cluster: Cluster) -> PodLives:
    """A watch of the cluster's broker pods from now on, by broker index."""
    return PodLives(cluster.node, cluster.kubectl.namespace, lambda pod: pod["metadata"]["labels"].get(PODS))


def lives_by_broker(lives: list[PodLife]) -> dict[str, int]:
    """How many pods each broker has had."""
    brokers = [life.broker for life in lives]
    return {broker: brokers.count(broker) for broker in sorted(set(brokers))}
