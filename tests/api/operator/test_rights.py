"""Rights: none of the cluster's own for named namespaces, and one that is missing stops no more than it must."""

from __future__ import annotations

from collections.abc import Callable

from lab.control_plane import ControlPlane
from tests.support.clusters import (
    children,
    condition,
    has,
    make_settled,
    not_ready_because,
    queen_cluster,
    rests,
    secret,
    status,
)
from tests.support.objects import Object, Objects
from tests.support.operators import ACCOUNT, Account, Operators, install_account
from tests.support.waiting import wait_until


def _without_patch_of_budgets(role: Object) -> list[Object]:
    return [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"]}
        if "poddisruptionbudgets" in rule["resources"]
        else rule
        for rule in role["rules"]
    ]


def test_one_missing_right_is_named_stops_nothing_else_and_needs_no_restart_when_it_is_back(
    objects: Objects, account: Account, operators: Operators
) -> None:
    role = objects.there("Role", ACCOUNT)
    objects.patch("Role", ACCOUNT, {"rules": _without_patch_of_budgets(role)})
    process = operators.working(account)

    objects.make(secret(), queen_cluster())

    budget = ("PodDisruptionBudget", "orders")
    wait_until("the rest to be made", has(objects, children() - {budget}))
    words = ("PodDisruptionBudget orders", "is forbidden", 'cannot patch resource "poddisruptionbudgets"')
    wait_until("the refusal to be named", not_ready_because(objects, "PodRefused", *words))
    assert condition(objects, "Stalled")["status"] == "True"
    assert objects.get(*budget) is None

    # A later change is carried out all the same.
    objects.delete("Service", "orders-push")
    wait_until("the Service to be back", has(objects, {("Service", "orders-push")}))

    objects.patch("Role", ACCOUNT, {"rules": role["rules"]})
    wait_until("the budget to be made", has(objects, {budget}), seconds=60)
    wait_until("the refusal to be forgotten", lambda: rests(objects) and not condition(objects, "Stalled"))
    assert process.running


def test_named_namespaces_need_no_right_of_the_whole_cluster_and_others_are_ignored(
    plane: ControlPlane, new_namespace: Callable[[], Objects], operators: Operators
) -> None:
    watched, also_watched, ignored = new_namespace(), new_namespace(), new_namespace()
    account = install_account(plane, f"{watched.namespace}-ops", [watched.namespace, also_watched.namespace])
    bindings = watched.all("ClusterRoleBinding").values()
    assert not [item for item in bindings if account.namespace in str(item.get("subjects"))]
    ignored.make(secret(), queen_cluster())
    process = operators.working(account)

    make_settled(watched)
    make_settled(also_watched)

    assert process.page("/healthz") == (200, "ok")
    assert ignored.all("Deployment") == {}
    assert ignored.all("Service") == {}
    assert "plan" not in status(ignored)
    assert "forbidden" not in process.log().lower()


def test_sixteen_named_namespaces_leave_room_for_requests_beside_their_watches(
    plane: ControlPlane, new_namespace: Callable[[], Objects], operators: Operators
) -> None:
    watched = [new_namespace() for _ in range(16)]
    account = install_account(plane, f"{watched[0].namespace}-ops", [item.namespace for item in watched])
    operators.working(account)

    for objects in (watched[0], watched[-1]):
        make_settled(objects)
