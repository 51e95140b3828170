"""What is written differently and means the same changes nothing: no Deployment is ever touched for it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import ODD_SPEC, UNTOUCHED, condition, generations, make_settled, rests
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess, written_on_children
from tests.support.waiting import wait_until


def _spelled(cpu: str | int, memory: str, limit: str, size: str) -> Callable[[Object], None]:
    def change(spec: Object) -> None:
        spec["resources"] = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}
        spec["spool"]["size"] = size

    return change


def _turn_env_around(spec: Object) -> None:
    spec["broker"]["env"].reverse()


def _write_defaults_out(spec: Object) -> None:
    spec["broker"]["popTimeout"] = "30000ms"
    spec["broker"]["maxPopTimeout"] = "1m"
    spec["image"] = "ghcr.io/queen-mq/queen:1.3.0"
    spec["service"] = {"type": "ClusterIP", "annotations": {}}
    spec["rollout"] = {"minReadySeconds": 5, "brokerDeadline": "600s", "spoolDeadline": "10m"}


def _settle_things_of_the_operator(spec: Object) -> None:
    spec["rollout"] = {"minReadySeconds": 7, "brokerDeadline": "20m", "spoolDeadline": "20m"}


CHANGES = {
    "quantities in other units": _spelled("500m", "1Gi", "2000M", "5Gi"),
    "quantities with exponents": _spelled("5e-1", "1073741824", "2e9", "5368709120"),
    "variables in another order": _turn_env_around,
    "defaults written out": _write_defaults_out,
    "what only the operator reads": _settle_things_of_the_operator,
}


def test_a_spec_that_says_the_same_in_other_words_changes_nothing(
    objects: Objects, operator: OperatorProcess, plane: ControlPlane, subtests: pytest.Subtests
) -> None:
    make_settled(objects, **copy.deepcopy(ODD_SPEC))
    before = audit.position(plane.audit_log)
    for what, change in CHANGES.items():
        with subtests.test(what):
            stored = objects.there("QueenCluster", "orders")
            generation = stored["metadata"]["generation"]
            change(stored["spec"])

            made = objects.replace(stored)

            assert made["metadata"]["generation"] == generation + 1, "the spec is the same as before"
            wait_until("the operator to see it and rest", lambda: rests(objects))
            assert condition(objects, "RestartPending")["reason"] == "NothingPending"
            assert generations(objects) == UNTOUCHED
    assert written_on_children(plane, operator.account.user, before, objects.namespace) == set()

    # And one that does say something else is seen: it waits, since PostgreSQL cannot be reached here.
    objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "501m"}}}})
    wait_until("the change to be seen", lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait")
