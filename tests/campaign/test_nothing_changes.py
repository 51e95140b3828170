"""What a user may write differently without meaning anything else: no pod changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.databases import Database
from tests.support.node_clusters import Cluster, spec_for
from tests.support.waiting import wait_until

ENV = [
    {"name": "METRICS_RETENTION_DAYS", "value": "60"},
    {"name": "PARTITION_CLEANUP_DAYS", "value": "20"},
    {"name": "QUEEN_LOG_RATES_MS", "value": "60000"},
]
RESOURCES = {"requests": {"cpu": "0.1", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
RESPELLED = {"requests": {"cpu": "100m", "memory": "131072Ki"}, "limits": {"memory": "1024Mi"}}


def spec(database: Database, **changes: Any) -> dict[str, Any]:
    return spec_for(database, **{"broker": {"env": ENV}, "resources": RESOURCES, **changes})


def looked_again(cluster: Cluster, database: Database, **kept: Any) -> None:
    """Wait until the operator has acted on a later change that restarts nothing: it has seen everything before it."""
    service = {"annotations": {"seen": cluster.resource()["metadata"]["resourceVersion"]}}
    cluster.apply(spec(database, service=service, **kept))

    def carried_out() -> bool:
        found = cluster.kubectl.get("service", cluster.name)
        annotations = found["metadata"].get("annotations", {}) if found is not None else {}
        return annotations.get("seen") == service["annotations"]["seen"]

    wait_until("a later change to be carried out", carried_out)
    cluster.wait_ready()


def pods(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """UID and spec of each broker's pod, and the generation of its Deployment."""
    generations = {
        item["metadata"]["labels"]["queen-operator.dev/broker"]: item["metadata"]["generation"]
        for item in cluster.kubectl.items("deployments", "queen-operator.dev/broker")
    }
    return {broker: (uid, str(generations[broker])) for broker, uid in cluster.pod_uids().items()}


def test_metadata_order_spelling_and_a_rewritten_secret_change_no_pod_and_a_real_change_does(
    cluster: Cluster, database: Database
) -> None:
    cluster.apply(spec(database))
    cluster.wait_ready()
    before = pods(cluster)
    kept: dict[str, Any] = {}

    def metadata() -> None:
        cluster.kubectl("label", "queencluster", cluster.name, "team=payments")
        cluster.kubectl("annotate", "queencluster", cluster.name, "example.org/note=changed")

    def order() -> None:
        kept["broker"] = {"env": [ENV[2], ENV[0], ENV[1]]}
        cluster.apply(spec(database, **kept))

    def spelling() -> None:
        kept["resources"] = RESPELLED
        kept["spool"] = {"size": "1024Mi"}
        cluster.apply(spec(database, **kept))

    def rewritten_secret() -> None:
        cluster.kubectl("annotate", "secret", database.secret, "example.org/rewritten=1")

    def secret_made_anew() -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": database.secret}}
        cluster.kubectl("delete", "secret", database.secret)
        cluster.kubectl.apply([{**secret, "stringData": database.credentials()}])

    steps: tuple[Callable[[], None], ...] = (metadata, order, spelling, rewritten_secret, secret_made_anew)
    for change in steps:
        change()
        looked_again(cluster, database, **kept)

        assert pods(cluster) == before, change.__name__
        assert cluster.condition("RestartPending")["status"] == "False", change.__name__

    kept["broker"] = {"env": [{"name": "METRICS_RETENTION_DAYS", "value": "61"}, *ENV[1:]]}
    cluster.apply(spec(database, **kept))
    replaced = {uid for uid, _ in before.values()}
    wait_until("a real change to restart all brokers", lambda: not replaced & set(cluster.pod_uids().values()), 400)
