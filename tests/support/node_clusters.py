"""A QueenCluster of one test on the real node: made, looked at, and loaded with messages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import cache
from lab.node import Node
from tests.support.databases import Database
from tests.support.namespaces import NamespacedKubectl
from tests.support.waiting import wait_until

PUSH_LABEL = "queen-operator.dev/push"
PODS = "queen-operator.dev/broker"
READY_SECONDS = 300  # a busy machine pulls nothing, but starts everything on two cores


def spec_for(database: Database, **changes: Any) -> dict[str, Any]:
    """The spec of a cluster on this test's database; ``changes`` replace whole fields."""
    postgres = {
        "host": database.host,
        "database": database.name,
        "user": database.user,
        "passwordSecret": {"name": database.secret, "key": "password"},
        "poolSize": 20,
    }
    return {"version": "1.3.0", "postgres": postgres, "spool": {"size": "1Gi"}, **changes}


@dataclass(frozen=True)
class Cluster:
    """One QueenCluster called ``orders`` in the namespace of a test."""

    node: Node
    kubectl: NamespacedKubectl
    name: str = "orders"

    def apply(self, spec: dict[str, Any]) -> None:
        """Create it, or change it to this spec."""
        manifest = {"apiVersion": "queen-operator.dev/v1alpha1", "kind": "QueenCluster"}
        self.kubectl.apply([{**manifest, "metadata": {"name": self.name}, "spec": spec}])

    def resource(self) -> dict[str, Any]:
        found = self.kubectl.get("queencluster", self.name)
        assert found is not None
        return found

    def status(self) -> dict[str, Any]:
        return dict(self.resource()["status"])

    def condition(self, kind: str) -> dict[str, Any]:
        """A condition of it; empty while there is none."""
        found: Iterator[dict[str, Any]] = (item for item in self.status()["conditions"] if item["type"] == kind)
        return next(found, {})

    def is_ready(self) -> bool:
        """Ready, and said so of the spec as it is now."""
        return is_ready(self.resource())

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        wait_until(f"{self.name} to be Ready", self.is_ready, seconds)

    def pods(self) -> list[dict[str, Any]]:
        """Broker pods, those that are leaving too."""
        return self.kubectl.items("pods", PODS)

    def pod_uids(self) -> dict[str, str]:
        """Pod UID by broker index."""
        return {pod["metadata"]["labels"][PODS]: pod["metadata"]["uid"] for pod in self.pods()}

    def restarts(self) -> int:
        """How often any container of any broker pod was restarted."""
        statuses = []
        for pod in self.pods():
            statuses += pod["status"].get("containerStatuses", []) + pod["status"].get("initContainerStatuses", [])
        return sum(status["restartCount"] for status in statuses)

    def url(self, service: str) -> str:
        return f"http://{service}.{self.kubectl.namespace}.svc.cluster.local:6632"

    def push(self, *arguments: str | Path, service: str = "orders-push", queue: str = "q") -> dict[str, Any]:
        """Push messages through a Service and wait for the end; see ``lab.traffic push``."""
        return self._traffic("push", "--url", self.url(service), "--queue", queue, *arguments)

    @contextmanager
    def pushing(self, record: Path, *arguments: str, queue: str = "q") -> Iterator[dict[str, Any]]:
        """Push in the background while the body runs; the dict is filled with the summary at the end."""
        to = ["--url", self.url("orders-push"), "--queue", queue, "--record", str(record)]
        argv = [sys.executable, "-m", "lab.traffic", "push", *to, *arguments]
        process = self.node.popen_inside(argv, cwd=cache.CHECKOUT, text=True, stdout=subprocess.PIPE)
        summary: dict[str, Any] = {}
        try:
            yield summary
        finally:
            output, _ = process.communicate(timeout=400)
        assert process.returncode == 0
        summary.update(json.loads(output))

    def drain(self, expect: Path, *, queue: str = "q", seconds: int = 120) -> dict[str, Any]:
        """Pop and acknowledge through the ordinary Service until all expected messages came."""
        to = ["--url", self.url("orders"), "--queue", queue, "--group", "g"]
        return self._traffic("drain", *to, "--expect", expect, "--seconds", str(seconds))

    def _traffic(self, *arguments: str | Path) -> dict[str, Any]:
        done = self.node.run_inside([sys.executable, "-m", "lab.traffic", *arguments], cwd=cache.CHECKOUT)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


def is_ready(resource: dict[str, Any]) -> bool:
    """Whether a QueenCluster says that it is Ready, of the spec as it is now."""
    status = resource["status"]
    ready: dict[str, Any] = next((item for item in status["conditions"] if item["type"] == "Ready"), {})
    seen = status.get("observedGeneration") == resource["metadata"]["generation"]
    return bool(seen and ready.get("status") == "True")


def all_came_once(drained: dict[str, Any], count: int) -> bool:
    """Whether every one of so many messages was popped once and none that nobody sent."""
    wanted = {"unique": count, "duplicates": 0, "missing": 0, "foreign": 0}
    return {key: drained[key] for key in wanted} == wanted
