"""Pause, deletion, and the operator's own end."""

from __future__ import annotations

import time

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import children, condition, generations, has, make_settled, secret, status
from tests.support.objects import Objects
from tests.support.operators import Account, OperatorProcess, Operators, written_on_children
from tests.support.waiting import wait_until

CLAIMS = {child for child in children() if child[0] == "PersistentVolumeClaim"}
OWNED = children() - CLAIMS


def _seen(objects: Objects) -> bool:
    found = objects.there("QueenCluster", "orders")
    return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])


def _all_gone(objects: Objects) -> bool:
    return not any(objects.get(*child) for child in OWNED) and not objects.all("Pod") and not objects.all("ReplicaSet")


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
    assert generations(objects) == {"orders-0": 1, "orders-1": 1, "orders-2": 1}

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
    wait_until("the children to be collected", lambda: _all_gone(objects))


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_cluster_leaves_its_claims_and_nothing_comes_back(
    propagation: str, objects: Objects, plane: ControlPlane, operator: OperatorProcess
) -> None:
    make_settled(objects)
    claims = {name: item["metadata"]["uid"] for name, item in objects.all("PersistentVolumeClaim").items()}
    before = audit.position(plane.audit_log)

    objects.delete("QueenCluster", "orders", propagation)

    wait_until("the cluster to go", lambda: objects.get("QueenCluster", "orders") is None)
    wait_until("the children to be collected", lambda: _all_gone(objects))
    left = objects.all("PersistentVolumeClaim")
    assert {name: item["metadata"]["uid"] for name, item in left.items()} == claims
    for item in left.values():
        assert "deletionTimestamp" not in item["metadata"]
        assert item["metadata"]["labels"]["queen-operator.dev/cluster"] == "orders"
    # Not even for a moment: a Deployment that comes back for a second starts a pod on the claim.
    assert written_on_children(plane, operator.account.user, before, objects.namespace) == set()

    make_settled(objects)
    again = {name: item["metadata"]["uid"] for name, item in objects.all("PersistentVolumeClaim").items()}
    assert again == claims, "a cluster of the same name takes its volumes up again"


def test_a_cluster_that_is_deleted_while_no_operator_runs_is_gone_and_stays_gone(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators
) -> None:
    first = operators.working(account)
    make_settled(objects)
    assert first.stop() == 0

    objects.delete("QueenCluster", "orders")
    assert objects.get("QueenCluster", "orders") is None
    wait_until("the children to be collected", lambda: _all_gone(objects))
    before = audit.position(plane.audit_log)

    operators.working(account)
    objects.make(secret("other"))
    make_settled(objects, "another")
    assert _all_but(objects, "another") == CLAIMS
    assert not [
        what for what in written_on_children(plane, account.user, before, objects.namespace) if "/another" not in what
    ]


def _all_but(objects: Objects, name: str) -> set[tuple[str, str]]:
    kinds = {kind for kind, _ in children()} - {"ServiceAccount", "Secret"}
    found = {(kind, item) for kind in kinds for item in objects.all(kind)}
    return found - children(name)


def test_sigterm_ends_the_operator_in_order_whether_it_leads_or_waits(
    objects: Objects, account: Account, operators: Operators
) -> None:
    leader = operators.working(account, "leader")
    make_settled(objects)
    waiting = operators.start(account, "waiting")
    wait_until("the second to be ready to take over", lambda: waiting.page("/readyz")[0] == 200)
    assert not waiting.leads()

    for process in (waiting, leader):
        began = time.monotonic()
        assert process.stop(seconds=10) == 0, process.explain()
        assert time.monotonic() - began < 10
        assert "Traceback" not in process.log()
