"""Messages in the spools of a cluster, and the claims that keep them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.kubectl import Kubectl
from tests.support.database_scenes import events
from tests.support.node_clusters import Cluster
from tests.support.waiting import wait_until

OPERATOR_NAMESPACE = "queen-system"


def merged(into: Path, *files: Path) -> Path:
    """One file with the lines of all."""
    into.write_text("".join(file.read_text() for file in files))
    return into


def fill_spools(cluster: Cluster, folder: Path, services: Sequence[str], count: int = 20) -> Path:
    """Push that many messages to each Service while PostgreSQL is away; return the record of all of them."""
    records = []
    for service in services:
        record = folder / f"spooled-{service}"
        pushed = cluster.push("--count", str(count), "--connections", "new", "--record", record, service=service)
        assert pushed["buffered"] == count, pushed
        records.append(record)
    return merged(folder / "spooled", *records)


def claims(cluster: Cluster) -> dict[str, str]:
    """UID by name of the cluster's claims, those that are on their way out too."""
    found = cluster.kubectl.items("pvc", f"queen-operator.dev/cluster={cluster.name}")
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}


def messages_of_events(cluster: Cluster, reason: str) -> list[str]:
    """What the Events of this reason say."""
    return [event["message"] for event in events(cluster, reason)]


def brokers(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The status of each broker by its name."""
    return {broker["name"]: broker for broker in cluster.status()["brokers"]}


def held_files(cluster: Cluster, name: str) -> int:
    """Files in the spool of a broker as the status says; 0 also when it is unknown or there is no such broker."""
    spool = brokers(cluster).get(name, {}).get("spool") or {}
    return int(spool.get("files") or 0)


def exists(cluster: Cluster) -> bool:
    return cluster.kubectl.get("queencluster", cluster.name) is not None


@contextmanager
def operator_away(everywhere: Kubectl) -> Iterator[None]:
    """No operator runs while the body does; afterwards one does again, however the body ended."""
    scale = (f"--namespace={OPERATOR_NAMESPACE}", "scale", "deployment/queen-operator")
    everywhere.run(*scale, "--replicas=0")
    pods = "app.kubernetes.io/name=queen-operator"
    try:
        wait_until("the operator to be gone", lambda: not everywhere.items("pods", OPERATOR_NAMESPACE, pods))
        yield
    finally:
        everywhere.run(*scale, "--replicas=1")
        wait = ("rollout", "status", "deployment/queen-operator", "--timeout=180s")
        everywhere.run(f"--namespace={OPERATOR_NAMESPACE}", *wait)
