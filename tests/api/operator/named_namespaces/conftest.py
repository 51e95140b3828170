"""Operators for named namespaces: each test has its own.

Three tests need time and nothing else. Their scenes begin with the first test of the folder, so that the clocks run
while the others do their work; the tests themselves come last.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.control_plane import ControlPlane
from tests.support.clusters import children, has, make_settled, not_ready_because, queen_cluster, secret
from tests.support.objects import Object
from tests.support.operators import ACCOUNT, Operators
from tests.support.scenes import Scene, forwarder_to, namespace_with_account, through
from tests.support.waiting import wait_until

_SCENES = ("silenced", "orphaned", "forbidden", "resting")


@pytest.fixture(scope="package", autouse=True)
def clocks_run_from_the_start(request: pytest.FixtureRequest) -> None:
    """Begin every scene that a test of this run is going to ask for."""
    asked = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    for name in _SCENES:
        if name in asked:
            request.getfixturevalue(name)


@pytest.fixture(scope="package")
def operators_of_scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operators]:
    made = Operators(tmp_path_factory.mktemp("operators"))
    yield made
    for process in made.started:
        process.kill()


@pytest.fixture(scope="package")
def silenced(
    plane: ControlPlane, operators_of_scenes: Operators, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Every connection of the operator has gone silent; since then a Service is away and the spec another."""
    objects, account = namespace_with_account(plane, "silenced")
    with forwarder_to(account.kubeconfig) as forwarder:
        kubeconfig = through(forwarder, account.kubeconfig, tmp_path_factory.mktemp("silenced"))
        process = operators_of_scenes.working(account, kubeconfig=kubeconfig)
        make_settled(objects)
        assert forwarder.swallow() >= 8, "no watch of each kind was open"
        scene = Scene.begin(plane, objects, process)
        objects.delete("Service", "orders")
        objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "300m"}}}})
        yield scene


@pytest.fixture(scope="package")
def orphaned(plane: ControlPlane, operators_of_scenes: Operators) -> Scene:
    """Two operators, of which the one that led was killed."""
    objects, account = namespace_with_account(plane, "orphaned")
    first = operators_of_scenes.working(account, "first")
    second = operators_of_scenes.start(account, "second")
    make_settled(objects)
    wait_until("the second to be ready to take over", lambda: second.page("/readyz")[0] == 200)
    assert not second.leads()
    assert second.rounds() == 0
    scene = Scene.begin(plane, objects, second)
    first.kill()
    return scene


def _without_patch_of_budgets(role: Object) -> list[Object]:
    return [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb != "patch"]}
        if "poddisruptionbudgets" in rule["resources"]
        else rule
        for rule in role["rules"]
    ]


@pytest.fixture(scope="package")
def forbidden(plane: ControlPlane, operators_of_scenes: Operators) -> Scene:
    """The operator was not allowed to patch disruption budgets when the cluster was made, and is again."""
    objects, account = namespace_with_account(plane, "forbidden")
    role = objects.there("Role", ACCOUNT)
    objects.patch("Role", ACCOUNT, {"rules": _without_patch_of_budgets(role)})
    process = operators_of_scenes.working(account)
    objects.make(secret(), queen_cluster())

    budget = ("PodDisruptionBudget", "orders")
    wait_until("the rest to be made", has(objects, children() - {budget}))
    words = ("PodDisruptionBudget orders", "is forbidden", 'cannot patch resource "poddisruptionbudgets"')
    wait_until("the refusal to be named", not_ready_because(objects, "PodRefused", *words))
    objects.delete("Service", "orders-push")
    wait_until("a later change to be carried out all the same", has(objects, {("Service", "orders-push")}))
    assert objects.get(*budget) is None

    scene = Scene.begin(plane, objects, process)
    objects.patch("Role", ACCOUNT, {"rules": role["rules"]})
    return scene


@pytest.fixture(scope="package")
def resting(plane: ControlPlane, operators_of_scenes: Operators) -> Scene:
    """A settled cluster that nobody touches."""
    objects, account = namespace_with_account(plane, "resting")
    process = operators_of_scenes.working(account)
    make_settled(objects)
    return Scene.begin(plane, objects, process)
