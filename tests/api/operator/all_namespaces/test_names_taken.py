"""Objects that have one of our names and are not ours: never touched, named, and taken up once they are gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Scene:
    """A cluster one of whose names is taken."""

    objects: Objects
    foreign: Object
    dependent: set[tuple[str, str]]

    @property
    def key(self) -> tuple[str, str]:
        return self.foreign["kind"], self.foreign["metadata"]["name"]


def test_what_is_not_ours_is_never_touched_and_taken_up_once_it_is_gone(
    new_namespace: Callable[[], Objects], plane: ControlPlane, operator: OperatorProcess, subtests: pytest.Subtests
) -> None:
    before = audit.position(plane.audit_log)
    scenes = {what: _Scene(new_namespace(), foreign, dependent) for what, (foreign, dependent) in TAKEN.items()}
    for scene in scenes.values():
        scene.objects.make(scene.foreign, secret(), queen_cluster())

    for what, scene in scenes.items():
        with subtests.test(f"{what} is left alone"):
            _check_that_it_is_left_alone(scene, plane, operator, before)
    for scene in scenes.values():
        kind, name = scene.key
        if kind == "PersistentVolumeClaim":
            scene.objects.patch(kind, name, {"metadata": {"finalizers": None}})
        scene.objects.delete(kind, name)

    for what, scene in scenes.items():
        with subtests.test(f"{what} has gone"):
            wait_until("everything to be made", has(scene.objects, children()), seconds=30)
            wait_until("the condition to go", lambda scene=scene: _is_free(scene.objects), seconds=30)  # type: ignore[misc]


def _check_that_it_is_left_alone(scene: _Scene, plane: ControlPlane, operator: OperatorProcess, before: int) -> None:
    objects, (kind, name) = scene.objects, scene.key
    wait_until("the condition to name it", not_ready_because(objects, "NameTaken", f"{kind} {name}"))
    wait_until("the rest to be made", has(objects, children() - {scene.key} - scene.dependent))
    wait_until("the operator to rest", lambda: rests(objects))
    assert condition(objects, "Stalled")["reason"] == "NameTaken"
    assert [child for child in scene.dependent if objects.get(*child)] == []
    written = writes(plane, operator.account.user, before, objects.namespace)
    assert [what for what in written if what.endswith(f" {kind.lower()}s/{name}")] == []
    wanted = scene.foreign["metadata"]["labels"]
    assert objects.there(kind, name)["metadata"].get("labels", {}) == wanted


def _is_free(objects: Objects) -> bool:
    reasons = {condition(objects, kind).get("reason") for kind in ("Ready", "Stalled")}
    return rests(objects) and "NameTaken" not in reasons


def test_a_child_whose_owner_was_taken_off_is_somebodys_from_then_on(
    objects: Objects, operator: OperatorProcess
) -> None:
    make_settled(objects)

    objects.patch("Service", "orders-push", {"metadata": {"ownerReferences": None}})

    wait_until("the condition to name it", not_ready_because(objects, "NameTaken", "Service orders-push"))
