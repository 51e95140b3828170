"""What takes its time: rest, the taking over of a dead leader's work, and a connection that has gone silent.

The three run side by side from the first test of this file on; each test then waits for the end of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import children, condition, generations, has, make_settled, versions
from tests.support.forwarders import Forwarder
from tests.support.namespaces import fresh_name, namespace_object
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess, Operators, install_account, written_on_children
from tests.support.waiting import wait_until

REST_SECONDS = 30


@dataclass(frozen=True)
class Scene:
    """A settled cluster with operators of its own; ``since`` is when the clock began to run."""

    objects: Objects
    operators: list[OperatorProcess]
    audit_position: int
    since: float

    @property
    def user(self) -> str:
        return self.operators[0].account.user

    def seconds_left(self, limit: float) -> float:
        return max(0.0, self.since + limit - time.monotonic())


def _namespace(plane: ControlPlane, name: str) -> Objects:
    objects = Objects(plane.kubeconfig, fresh_name(name))
    objects.make(namespace_object(objects.namespace))
    return objects


@pytest.fixture(scope="module")
def operators_of_the_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operators]:
    made = Operators(tmp_path_factory.mktemp("operators"))
    yield made
    for process in made.started:
        process.kill()


@pytest.fixture(scope="module")
def silenced(
    plane: ControlPlane, operators_of_the_file: Operators, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Every connection of the operator has gone silent; since then a Service is away and the spec another."""
    objects = _namespace(plane, "silenced")
    account = install_account(plane, f"{objects.namespace}-ops", [objects.namespace])
    config = json.loads(Path(account.kubeconfig).read_text())
    server = config["clusters"][0]["cluster"]["server"]
    with Forwarder("127.0.0.1", int(server.rpartition(":")[2])) as forwarder:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{forwarder.port}"
        kubeconfig = tmp_path_factory.mktemp("silenced") / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        process = operators_of_the_file.working(account, kubeconfig=kubeconfig)
        make_settled(objects)
        assert forwarder.swallow() >= 8, "a watch of each kind was open"
        scene = Scene(objects, [process], audit.position(plane.audit_log), time.monotonic())
        objects.delete("Service", "orders")
        objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "300m"}}}})
        yield scene


@pytest.fixture(scope="module")
def orphaned(plane: ControlPlane, operators_of_the_file: Operators) -> Scene:
    """Two operators, of which the one that led was killed."""
    objects = _namespace(plane, "orphaned")
    account = install_account(plane, f"{objects.namespace}-ops", [objects.namespace])
    first = operators_of_the_file.working(account, "first")
    second = operators_of_the_file.start(account, "second")
    make_settled(objects)
    wait_until("the second to be ready to take over", lambda: second.page("/readyz")[0] == 200)
    assert not second.leads()
    assert second.rounds() == 0
    position = audit.position(plane.audit_log)
    first.kill()
    return Scene(objects, [second], position, time.monotonic())


@pytest.fixture(scope="module")
def resting(plane: ControlPlane, operators_of_the_file: Operators) -> Scene:
    """A settled cluster that nobody touches."""
    objects = _namespace(plane, "resting")
    account = install_account(plane, f"{objects.namespace}-ops", [objects.namespace])
    process = operators_of_the_file.working(account)
    make_settled(objects)
    return Scene(objects, [process], audit.position(plane.audit_log), time.monotonic())


@pytest.fixture(autouse=True)
def side_by_side(silenced: Scene, orphaned: Scene, resting: Scene) -> None:
    """Let all clocks run."""


def _describe(entry: Object) -> str:
    about = entry.get("objectRef", {})
    return f"{entry['verb']} {about.get('resource')}/{about.get('name', '')}"


def test_at_rest_the_operator_asks_for_nothing_but_its_lease_although_its_rounds_go_on(
    plane: ControlPlane, resting: Scene
) -> None:
    rounds = resting.operators[0].rounds()
    cluster = versions(resting.objects, "QueenCluster")

    time.sleep(resting.seconds_left(REST_SECONDS))

    requests = [_describe(e) for e in audit.requests_of(plane.audit_log, resting.user, resting.audit_position)]
    allowed = {"get leases/queen-operator", "update leases/queen-operator"}
    assert [request for request in requests if not request.startswith("watch ") and request not in allowed] == []
    assert "update leases/queen-operator" in requests
    # A field of the status that the server drops would be missed and written again in each of these rounds.
    wait_until("rounds to have gone on", lambda: resting.operators[0].rounds() >= rounds + 3)
    assert versions(resting.objects, "QueenCluster") == cluster


def test_a_second_operator_takes_over_from_one_that_was_killed_and_writes_nothing_twice(
    plane: ControlPlane, orphaned: Scene
) -> None:
    (second,) = orphaned.operators

    wait_until("the second to lead", second.leads, orphaned.seconds_left(90))
    wait_until("a round of it", lambda: second.rounds() > 0)

    assert generations(orphaned.objects) == {"orders-0": 1, "orders-1": 1, "orders-2": 1}
    assert written_on_children(plane, orphaned.user, orphaned.audit_position, orphaned.objects.namespace) == set()
    orphaned.objects.delete("Service", "orders")
    wait_until("a Service to be put back by it", has(orphaned.objects, children()))


def test_what_changes_while_every_open_connection_is_silent_is_acted_on_within_two_minutes(
    silenced: Scene,
) -> None:
    objects, (process,) = silenced.objects, silenced.operators
    wait_until("the Service to be back", has(objects, children()), silenced.seconds_left(120))
    wait_until(
        "the change of the spec to be seen",
        lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait",
        silenced.seconds_left(120),
    )
    # It led all the time: nobody could have taken its place.
    assert process.leads()
    assert process.log().count("leading as") == 1
