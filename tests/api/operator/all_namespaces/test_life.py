"""Pause and deletion."""

from __future__ import annotations

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import (
    UNTOUCHED,
    all_collected,
    children,
    condition,
    generations,
    has,
    make_settled,
    secret,
    status,
)
from tests.support.objects import Objects
from tests.support.operators import OperatorProcess, written_on_children
from tests.support.waiting import wait_until


def _seen(objects: Objects) -> bool:
    found = objects.there("QueenCluster", "orders")
    return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])


def test_nothing_is_written_to_children_while_paused_and_work_goes_on_afterwards(
    objects: Objects, plane: ControlPlane, operator: OperatorProcess
) -> None:
    make_settled(objects)
    objects.patch("QueenCluster", "orders", {"spec": {"paused": True}})
    wait_until("the pause to be told", lambda: condition(objects, "Paused")["status"] == "True")
    generation = objects.there("QueenCluster", "orders")["metadata"]["generation"]
    assert f"generation {generation}" in condition(objects, "Paused")["message"]
    assert status(objects)["phase"] == "Paused"
    before = audit.position(plane.audit_log)

    objects.delete("Service", "orders")
    objects.patch("PodDisruptionBudget", "orders", {"spec": {"maxUnavailable": 2}})
    objects.patch("Secret", "pg", secret(password="another"))
    objects.patch("QueenCluster", "orders", {"spec": {"version": "1.3.1"}})

    # That the status follows the spec shows that rounds go on.
    wait_until("the status to follow", lambda: _seen(objects))
    assert condition(objects, "Paused")["status"] == "True"
    assert written_on_children(plane, operator.account.user, before, objects.namespace) == set()
    assert objects.get("Service", "orders") is None
    assert generations(objects) == UNTOUCHED

    objects.patch("QueenCluster", "orders", {"spec": {"paused": False}})
    wait_until("the Service to be back", has(objects, children()))
    wait_until(
        "the budget to be put back",
        lambda: objects.there("PodDisruptionBudget", "orders")["spec"]["maxUnavailable"] == 1,
    )
    wait_until("the end of the pause to be told", lambda: condition(objects, "Paused")["status"] == "False")


def test_a_paused_cluster_can_be_deleted(objects: Objects, operator: OperatorProcess) -> None:
    make_settled(objects)
    objects.patch("QueenCluster", "orders", {"spec": {"paused": True}})
    wait_until("the pause to be told", lambda: condition(objects, "Paused")["status"] == "True")

    objects.delete("QueenCluster", "orders")

    assert objects.get("QueenCluster", "orders") is None
    wait_until("the children to be collected", lambda: all_collected(objects))


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_cluster_leaves_its_claims_and_nothing_comes_back(
    propagation: str, objects: Objects, plane: ControlPlane, operator: OperatorProcess
) -> None:
    make_settled(objects)
    before_uids = {name: item["metadata"]["uid"] for name, item in objects.all("PersistentVolumeClaim").items()}
    before = audit.position(plane.audit_log)

    objects.delete("QueenCluster", "orders", propagation)

    wait_until("the cluster to go", lambda: objects.get("QueenCluster", "orders") is None)
    wait_until("the children to be collected", lambda: all_collected(objects))
    left = objects.all("PersistentVolumeClaim")
    assert {name: item["metadata"]["uid"] for name, item in left.items()} == before_uids
    for item in left.values():
        assert "deletionTimestamp" not in item["metadata"]
        assert item["metadata"]["labels"]["queen-operator.dev/cluster"] == "orders"
    # Not even for a moment: a Deployment that comes back for a second starts a pod on the claim.
    assert written_on_children(plane, operator.account.user, before, objects.namespace) == set()

    make_settled(objects)
    again = {name: item["metadata"]["uid"] for name, item in objects.all("PersistentVolumeClaim").items()}
    assert again == before_uids, "a cluster of the same name takes its volumes up again"
