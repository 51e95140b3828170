"""What happened to the pods, Deployments and claims of a namespace, in the order in which the API server stored it."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.api_client import ApiClient
from queen_operator.cluster.kinds import BY_NAME
from tests.support.waiting import wait_until

_KINDS = ("Pod", "Deployment", "PersistentVolumeClaim")
_SECONDS = 900

Object = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One change; ``version`` orders the changes of every kind, since all are kept in one store."""

    version: int
    kind: str
    gone: bool
    item: Object

    @property
    def name(self) -> str:
        return str(self.item["metadata"]["name"])

    @property
    def leaving(self) -> bool:
        """Whether its deletion has been asked for."""
        return "deletionTimestamp" in self.item["metadata"]


class History:
    """Watches from the moment it is made; what exists then comes first."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._changes: list[Change] = []
        client = ApiClient.from_kubeconfig(kubeconfig)
        for kind in _KINDS:
            path = BY_NAME[kind].path(namespace)
            threading.Thread(target=self._watch, args=(client, kind, path), daemon=True).start()

    def _watch(self, client: ApiClient, kind: str, path: str) -> None:
        # The node, and the line with it, may end before this thread does.
        with contextlib.suppress(OSError, http.client.HTTPException):
            for event in client.watch(path, _SECONDS):
                item = event["object"]
                version = int(item["metadata"]["resourceVersion"])
                self._changes.append(Change(version, kind, event["type"] == "DELETED", item))

    def changes(self, kind: str) -> Iterator[Change]:
        """Changes of one kind so far, in order."""
        return (change for change in list(self._changes) if change.kind == kind)

    def first(self, what: str, kind: str, matches: Callable[[Change], bool]) -> Change:
        """The first change that matches, waited for; AssertionError when none comes."""
        return wait_until(what, lambda: next(filter(matches, self.changes(kind)), None))


@dataclass(frozen=True)
class Removal:
    """How a broker was taken away: the numbers of the last five steps, and what its last report pod said."""

    deployment_deleted: int
    last_pod_gone: int
    report_made: int
    report_told: int
    claim_deleted: int
    report: Object

    @property
    def in_order(self) -> bool:
        """Each step came after the one before it."""
        steps = [self.deployment_deleted, self.last_pod_gone, self.report_made, self.report_told, self.claim_deleted]
        return steps == sorted(set(steps))


def removal_of(history: History, cluster: str, index: int) -> Removal:
    """Read how this broker and its claim went; AssertionError when a step is missing."""
    broker, claim = f"{cluster}-{index}", f"{cluster}-spool-{index}"
    deleted = history.first(f"the end of {claim}", "PersistentVolumeClaim", lambda c: c.name == claim and c.leaving)
    before = Before(history, deleted.version)
    looked = before.last("Pod", lambda c: _label(c, "proof") == str(index) and not c.leaving and not _ended(c.item))
    pod = looked.item["metadata"]
    mine = [c for c in before.changes("Pod") if c.item["metadata"]["uid"] == pod["uid"]]
    told = next(c for c in mine if _ended(c.item))
    assert pod["annotations"]["queen-operator.dev/claim-uid"] == deleted.item["metadata"]["uid"]
    return Removal(
        deployment_deleted=before.last("Deployment", lambda c: c.name == broker and c.gone).version,
        last_pod_gone=before.last("Pod", lambda c: _label(c, "broker") == str(index) and c.gone).version,
        report_made=mine[0].version,
        report_told=told.version,
        claim_deleted=deleted.version,
        report=_ended(told.item) or {},
    )


@dataclass(frozen=True)
class Before:
    """The part of a history before one change."""

    history: History
    version: int

    def changes(self, kind: str) -> list[Change]:
        return [change for change in self.history.changes(kind) if change.version < self.version]

    def last(self, kind: str, matches: Callable[[Change], bool]) -> Change:
        """The last change that matches; AssertionError when there is none."""
        found = [change for change in self.changes(kind) if matches(change)]
        assert found, f"the history of {kind}s misses a step before {self.version}"
        return found[-1]


def _label(change: Change, name: str) -> str:
    labels = change.item["metadata"].get("labels") or {}
    return str(labels.get(f"queen-operator.dev/{name}", ""))


def _ended(pod: Object) -> Object | None:
    statuses = pod.get("status", {}).get("containerStatuses") or []
    found: Object | None = statuses[0]["state"].get("terminated") if statuses else None
    return found
