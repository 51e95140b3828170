"""A scale-down in the middle of something else: scaling up again, other edits, brokers that cannot drain or run."""

from copy import deepcopy

import pytest

from queen_operator.api import names
from queen_operator.planning.actions import (
    ApplyChildren,
    CloseToPushes,
    RestartBroker,
)
from queen_operator.planning.observed import ReferencedKey
from queen_operator.planning.reasons import EventReason
from queen_operator.planning.reports import held_of_claim
from queen_operator.planning.wanted import render_wanted
from tests.unit.planning.removals import fewer, until
from tests.unit.planning.scene import context_of, healthy_cluster
from tests.unit.planning.volumes_of_world import Volume
from tests.unit.planning.world import World, living, pods_of


@pytest.mark.parametrize(("policy", "late_push"), [("Delete", False), ("Retain", False), ("Delete", True)])
def test_scaling_up_at_every_step_takes_the_broker_back(policy: str, late_push: bool) -> None:
    world = fewer(spool={"onScaleDown": policy})
    volume, steps = world.volume(2), 0
    while not world.gone and not (world.done and world.still):
        world.step()
        steps += 1
        if late_push and "orders-2" not in world.scene.deployments and not volume.drained:
            volume.files = 3  # a push that came at the very last
        _comes_back(deepcopy(world), steps)

    assert steps > 10


def _comes_back(world: World, steps: int) -> None:
    """Scale up now: all three are Ready again, in both Services, and what the volume held is in PostgreSQL."""
    there = "orders-spool-2" in world.scene.claims
    volume = world.volume(2) if there else Volume()
    held = volume.files + volume.drained
    world.scene.change_spec(replicas=3)
    world.run()

    assert world.scene.make_status()["ready"] == "3/3", steps
    assert (volume.drained, volume.files) == (held, 0), steps
    assert not any(names.PROOF_LABEL in pod["metadata"]["labels"] for pod in world.scene.pods), steps
    assert not any(names.REMOVING_ANNOTATION in c["metadata"]["annotations"] for c in world.scene.claims.values())
    for index in range(3):
        labels = pods_of(world, index)[0]["metadata"]["labels"]
        assert (labels[names.PUSH_LABEL], labels[names.SERVE_LABEL]) == ("true", "true"), steps


def test_a_blocked_broker_holds_neither_a_roll_nor_the_removal_of_others() -> None:
    world = living(replicas=4)
    world.volume(3).quarantined = 2
    world.scene.change_spec(replicas=2, version="1.4.0")
    world.run()

    assert set(world.scene.deployments) == {"orders-0", "orders-1", "orders-3"}
    assert sorted(world.stopped) == [0, 1, 2]
    assert world.scene.make_status()["phase"] == "Blocked"
    assert "orders-3" in world.scene.make_status()["message"]


def rotate(world: World) -> None:
    """The password changes: brokers that know the old one can use PostgreSQL no more."""
    world.scene.wanted = render_wanted(context_of(world.scene.spec, digest="d2"))
    world.scene.references = tuple(
        ReferencedKey(ref.secret, ref.key, ref.purpose, digest="d2") for ref in world.scene.references
    )
    world.locked_out = True


def test_a_surplus_broker_with_the_old_password_is_restarted_once_to_drain() -> None:
    world = fewer()
    volume = world.volume(2)
    volume.files = 40
    rotate(world)
    world.run()

    assert len(world.did(RestartBroker, index=2)) == 1
    assert volume.drained == 40
    assert world.stopped.count(2) == 2, "once to drain, once for good"
    assert world.scene.make_status()["ready"] == "2/2"


def test_a_surplus_broker_with_the_old_password_and_nothing_to_drain_is_not_restarted() -> None:
    world = fewer()
    rotate(world)
    world.run()

    assert world.did(RestartBroker, index=2) == []
    assert "orders-spool-2" not in world.scene.claims


def test_a_surplus_broker_that_cannot_run_is_taken_away_when_its_volume_is_proved_empty() -> None:
    world = fewer()
    world.scene.crash(2)
    world.run()

    assert "orders-spool-2" not in world.scene.claims


def test_a_surplus_broker_that_cannot_run_and_holds_messages_is_blocked_with_numbers() -> None:
    world = fewer()
    world.volume(2).files = 7
    world.locked_out = True  # it crashes, and nothing that the user wrote since would cure it
    world.scene.crash(2)
    pod = world.scene.pod(2)
    pod["metadata"]["annotations"] = {**pod["metadata"]["annotations"], names.CONFIG_ANNOTATION: "{}"}
    world.run()

    status = world.scene.make_status()
    assert "orders-spool-2" in world.scene.claims
    assert status["phase"] == "Blocked"
    assert "it does not run and its volume holds 7 files (700 bytes) and 0 quarantined files" in status["message"]


def test_a_broker_that_is_still_coming_up_is_waited_for_and_not_stopped_half_way() -> None:
    world = living(replicas=2)
    world.scene.change_spec(replicas=3)
    until(world, lambda world: "orders-spool-2" in world.scene.claims and len(world.volumes) == 3)
    world.volume(2).files = 4
    world.scene.change_spec(replicas=2)
    volume = world.volume(2)
    world.run()

    assert world.stopped == [2]
    assert volume.drained == 4


@pytest.mark.parametrize("second_edit_after", [0, 4, 9, 14, 20, 30])
def test_a_mixed_edit_restarts_each_staying_broker_at_most_once_per_edit(second_edit_after: int) -> None:
    world = living(replicas=4)
    world.scene.change_spec(replicas=3, version="1.4.0", spool={"size": "20Gi"})
    rotate(world)
    world.locked_out = False  # sessions with the old password go on
    for _ in range(second_edit_after):
        world.step()
    world.scene.change_spec(replicas=2, version="1.5.0", spool={"size": "30Gi"})
    rotate(world)
    world.locked_out = False
    world.run(most=400)

    assert set(world.scene.deployments) == {"orders-0", "orders-1"}
    assert set(world.scene.claims) == {"orders-spool-0", "orders-spool-1"}
    for index in (0, 1):
        assert 1 <= world.stopped.count(index) <= (1 if second_edit_after == 0 else 2)
        claim = world.scene.claims[f"orders-spool-{index}"]
        assert claim["spec"]["resources"]["requests"]["storage"] == "30Gi"
    assert world.scene.make_status()["phase"] == "Ready"


def test_two_surplus_brokers_are_never_away_at_once_with_a_member() -> None:
    world = living(replicas=4)
    world.scene.change_spec(replicas=2, version="1.4.0")
    while not (world.done and world.still):
        world.step()
        ends = [pod for pod in world.scene.pods if "deletionTimestamp" in pod["metadata"]]
        unready = [index for index in (0, 1) if index in world.ours_away]
        broker_pods = [pod for pod in ends if names.BROKER_LABEL in pod["metadata"]["labels"]]
        assert len({pod["metadata"]["name"] for pod in broker_pods} | {f"orders-{i}-abc" for i in unready}) <= 1

    assert sorted(world.stopped) == [0, 1, 2, 3]


def test_the_claim_says_what_a_look_found_in_it() -> None:
    world = fewer()
    until(world, lambda world: "orders-2" not in world.scene.deployments)
    world.volume(2).quarantined = 2
    until(world, lambda world: bool(world.did(ApplyChildren, event=EventReason.DRAIN_STARTED)))

    held = held_of_claim(world.scene.claims["orders-spool-2"])
    assert held is not None
    assert (held.files, held.quarantined_files, held.empty) == (0, 2, False)


def test_a_write_that_the_server_refuses_is_said_and_keeps_nobody_else_waiting() -> None:
    scene = healthy_cluster()
    scene.change_spec(replicas=2, broker={"logLevel": "debug"})
    scene.more["refused"] = {("Pod", "orders-2-abc"): "denied by a policy"}

    action = scene.action()
    stalled = scene.condition("Stalled")

    assert isinstance(action, CloseToPushes)
    assert (action.pod, action.cordon) == ("orders-0-abc", False)
    assert stalled is not None
    assert "denied by a policy" in stalled["message"]
