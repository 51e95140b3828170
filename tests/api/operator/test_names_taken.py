"""Objects that have one of our names and are not ours: never touched, named, and taken up once they are gone."""

from __future__ import annotations

from typing import Any

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import (
    children,
    condition,
    has,
    make_settled,
    not_ready_because,
    queen_cluster,
    rests,
    secret,
)
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess, writes
from tests.support.waiting import wait_until


def _object(kind: str, name: str, api_version: str = "v1", *, labels: dict[str, str], **content: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels}, **content}


_HELM = {"app.kubernetes.io/managed-by": "Helm"}
# As left behind by another operator of this kind, or made by hand from a copy of ours.
_LIKE_OURS = {"app.kubernetes.io/managed-by": "queen-operator"}
_POD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
_SERVICE = {"ports": [{"port": 80}], "selector": {"app": "x"}}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_DEPLOYMENT = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": _POD}
_BUDGET = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}

# What is taken, and what cannot be made without it.
TAKEN: dict[str, tuple[Object, set[tuple[str, str]]]] = {
    "a Service by hand": (_object("Service", "orders", labels={}, spec=_SERVICE), set()),
    "a Service that looks like ours": (_object("Service", "orders-1", labels=_LIKE_OURS, spec=_SERVICE), set()),
    "a Deployment by Helm": (_object("Deployment", "orders-1", "apps/v1", labels=_HELM, spec=_DEPLOYMENT), set()),
    "a budget by Helm": (_object("PodDisruptionBudget", "orders", "policy/v1", labels=_HELM, spec=_BUDGET), set()),
    "an account by Helm": (_object("ServiceAccount", "orders", labels=_HELM), set()),
    # A broker would replay its own files into our database, and write ours beside them.
    "somebody's claim": (
        _object("PersistentVolumeClaim", "orders-spool-1", labels={}, spec=_CLAIM),
        {("Deployment", "orders-1")},
    ),
    "a Secret of the mesh": (
        _object("Secret", "orders-mesh", labels={}, data={}),
        {("Deployment", f"orders-{index}") for index in range(3)},
    ),
}


@pytest.mark.parametrize(("foreign", "dependent"), TAKEN.values(), ids=TAKEN.keys())
def test_what_is_not_ours_is_never_touched_and_taken_up_once_it_is_gone(
    foreign: Object, dependent: set[tuple[str, str]], objects: Objects, plane: ControlPlane, operator: OperatorProcess
) -> None:
    kind, name = foreign["kind"], foreign["metadata"]["name"]
    objects.make(foreign, secret())
    stored = objects.there(kind, name)
    before = audit.position(plane.audit_log)

    objects.make(queen_cluster())

    wait_until("the condition to name it", not_ready_because(objects, "NameTaken", f"{kind} {name}"))
    rest = children() - {(kind, name)} - dependent
    wait_until("the rest to be made", has(objects, rest))
    wait_until("the operator to rest", lambda: rests(objects))
    resource = f"{kind.lower()}s/{name}"
    written = writes(plane, operator.account.user, before, objects.namespace)
    assert not [what for what in written if what.endswith(f" {resource}")]
    assert objects.there(kind, name)["metadata"]["uid"] == stored["metadata"]["uid"]
    assert [child for child in dependent if objects.get(*child)] == []
    assert condition(objects, "Stalled").get("reason") == "NameTaken"

    if kind == "PersistentVolumeClaim":
        objects.patch(kind, name, {"metadata": {"finalizers": None}})
    objects.delete(kind, name)

    wait_until("everything to be made", has(objects, children()), seconds=30)
    wait_until(
        "the condition to go", lambda: condition(objects, "Ready").get("reason") not in ("NameTaken", None), seconds=30
    )
    assert condition(objects, "Stalled").get("reason") != "NameTaken"


def test_a_child_whose_owner_was_taken_off_is_somebodys_from_then_on(
    objects: Objects, operator: OperatorProcess
) -> None:
    make_settled(objects)

    objects.patch("Service", "orders-push", {"metadata": {"ownerReferences": None}})

    wait_until("the condition to name it", not_ready_because(objects, "NameTaken", "Service orders-push"))
