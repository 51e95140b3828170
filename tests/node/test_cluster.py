"""A QueenCluster on a real node: it comes up, carries messages, keeps its children, and is silent at rest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from lab.node import Node
from tests.support import audit
from tests.support.databases import Database
from tests.support.namespaces import NamespacedKubectl
from tests.support.node_clusters import PUSH_LABEL, Cluster, all_came_once, spec_for
from tests.support.waiting import wait_until

OPERATOR = "system:serviceaccount:queen-system:queen-operator"
REST_SECONDS = 60


def test_three_brokers_become_ready_and_every_message_comes_once_through_the_other_service(
    cluster: Cluster, database: Database, tmp_path: Path
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    pushed = cluster.push("--count", "300", "--clients", "8", "--record", tmp_path / "sent")
    drained = cluster.drain(tmp_path / "sent")

    assert pushed["accepted"] == 300
    assert all_came_once(drained, 300)
    assert cluster.status()["ready"] == "3/3"
    assert all(pod["metadata"]["labels"].get(PUSH_LABEL) == "true" for pod in cluster.pods())
    assert cluster.restarts() == 0


def test_a_broker_writes_its_spool_onto_its_volume_and_nowhere_else(cluster: Cluster, database: Database) -> None:
    cluster.apply(spec_for(database, replicas=1))
    cluster.wait_ready()
    pod = cluster.pods()[0]["metadata"]["name"]
    ip = cluster.pods()[0]["status"]["podIP"]

    log = cluster.kubectl("logs", pod, "-c", "broker")
    report = cluster.node.run_inside(["curl", "--silent", "--max-time", "5", f"http://{ip}:9632/spool"]).stdout

    assert "falling back" not in log
    assert "could not create quarantine dir" not in log
    assert '"writable": true' in report


def spec_of(kubectl: NamespacedKubectl, kind: str, name: str) -> dict[str, Any]:
    found = kubectl.get(kind, name)
    return dict(found["spec"]) if found is not None else {}


def test_a_child_that_is_deleted_or_edited_is_back_within_seconds_and_no_broker_restarts(
    cluster: Cluster, database: Database
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    kubectl, uids = cluster.kubectl, cluster.pod_uids()
    for kind, name in (("service", "orders"), ("service", "orders-1"), ("pdb", "orders"), ("serviceaccount", "orders")):
        kubectl("delete", kind, name)
    kubectl("patch", "service", "orders-push", "--type=merge", '-p={"spec":{"publishNotReadyAddresses":false}}')
    kubectl("label", "pod", "-l", "queen-operator.dev/broker=2", f"{PUSH_LABEL}-")

    wait_until("the deleted Services", lambda: kubectl.get("service", "orders") and kubectl.get("service", "orders-1"))
    wait_until("the deleted budget and account", lambda: kubectl.get("pdb", "orders") and kubectl.get("sa", "orders"))
    wait_until("the edited Service", lambda: spec_of(kubectl, "service", "orders-push")["publishNotReadyAddresses"])
    wait_until("the label of the pod", lambda: all(PUSH_LABEL in pod["metadata"]["labels"] for pod in cluster.pods()))

    assert cluster.pod_uids() == uids
    assert cluster.restarts() == 0


def test_a_deployment_that_is_deleted_comes_back_after_its_pod_is_gone(cluster: Cluster, database: Database) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    uids = cluster.pod_uids()

    cluster.kubectl("delete", "deployment", "orders-1", "--wait=false")
    wait_until("a new pod of orders-1", lambda: cluster.pod_uids().get("1") not in (None, uids["1"]), seconds=200)
    cluster.wait_ready()

    after = cluster.pod_uids()
    assert (after["0"], after["2"]) == (uids["0"], uids["2"])


def test_at_rest_the_operator_sends_nothing_but_watches_and_its_lease(
    cluster: Cluster, database: Database, node: Node
) -> None:
    cluster.apply(spec_for(database))
    cluster.wait_ready()
    version = cluster.resource()["metadata"]["resourceVersion"]

    def settled() -> bool:
        before = audit.position(node.audit_log)
        time.sleep(10)  # a span to count in, not a proof
        return not writes(node, cluster, before)

    wait_until("the last word of a cluster that came up", settled, seconds=180)
    version = cluster.resource()["metadata"]["resourceVersion"]
    since = audit.position(node.audit_log)
    time.sleep(REST_SECONDS)  # the span that is counted

    assert writes(node, cluster, since) == []
    assert cluster.resource()["metadata"]["resourceVersion"] == version


def writes(node: Node, cluster: Cluster, since: int) -> list[tuple[str, str]]:
    """Requests of the operator about this namespace, and about no namespace, that are not the start of a watch."""
    found = audit.requests_of(node.audit_log, OPERATOR, since)
    told = [entry for entry in found if entry["verb"] != "watch"]
    mine = [e for e in told if e.get("objectRef", {}).get("namespace", "") in ("", cluster.kubectl.namespace)]
    return [(entry["verb"], entry["requestURI"]) for entry in mine]
