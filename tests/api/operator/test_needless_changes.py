"""What is written differently and means the same changes nothing: no Deployment is ever touched for it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import condition, generations, make_settled, rests
from tests.support.objects import Object, Objects
from tests.support.operators import Account, OperatorProcess, Operators, written_on_children
from tests.support.waiting import wait_until

UNTOUCHED = {"orders-0": 1, "orders-1": 1, "orders-2": 1}
SPEC: Object = {
    "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"memory": "2G"}},
    "spool": {"size": "5120Mi"},
    "broker": {
        "env": [
            {"name": name, "value": value}
            for name, value in (("A", "on"), ("B", "0123"), ("C", "1e3"), ("D", ""), ("E", "ñ✓"), ("F", "{{ x }}"))
        ]
    },
}


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
    make_settled(objects, **copy.deepcopy(SPEC))
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


def test_an_operator_that_is_restarted_again_and_again_writes_nothing(
    objects: Objects, plane: ControlPlane, account: Account, operators: Operators
) -> None:
    first = operators.working(account)
    make_settled(objects, **copy.deepcopy(SPEC))
    assert first.stop() == 0
    before = audit.position(plane.audit_log)

    for _ in range(5):
        # A new process has a new order of sets and a new salt of hashes.
        process = operators.working(account)
        wait_until("a round", lambda process=process: process.rounds() > 0)  # type: ignore[misc]
        assert process.stop() == 0

    assert generations(objects) == UNTOUCHED
    assert written_on_children(plane, account.user, before, objects.namespace) == set()
