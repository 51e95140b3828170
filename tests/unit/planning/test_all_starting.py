"""A change that arrives while brokers are on their way up anyway: one tries it, the others come up as they were."""

import pytest

from queen_operator.planning.actions import RestartBroker, Wait
from queen_operator.planning.reasons import Reason
from tests.unit.planning.scene import Scene, healthy_cluster


def all_starting(**change: object) -> Scene:
    """Three pods boot, as after a reboot of their node, when the user changes the spec."""
    scene = healthy_cluster()
    for index in range(3):
        scene.unstarted(index)
    scene.change_spec(**(change or {"image": "queen:does-not-exist"}))
    return scene


def tried_by_the_first() -> Scene:
    scene = all_starting()
    scene.roll_on(0)
    scene.crash(0, reason="ImagePullBackOff")
    return scene


def test_of_three_brokers_that_boot_one_takes_a_change_at_once() -> None:
    action = all_starting().action()

    assert isinstance(action, RestartBroker)
    assert action.index == 0


def test_a_bad_change_takes_one_broker_although_the_others_boot_too() -> None:
    scene = tried_by_the_first()

    action = scene.action()

    assert isinstance(action, Wait)
    assert action.reason is Reason.POD_CANNOT_START
    assert "orders-1 is to be restarted and waits: orders-0 is not Ready" in action.message
    assert "ImagePullBackOff" in action.message
    assert scene.condition("Stalled") is not None


@pytest.mark.parametrize("index", [1, 2])
def test_a_broker_that_cannot_come_up_as_it_was_does_not_wait_for_one_that_cannot_come_up_either(index: int) -> None:
    scene = tried_by_the_first()
    scene.crash(index)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == index


def test_a_broker_that_boots_beyond_its_deadline_does_not_come_by_itself() -> None:
    scene = tried_by_the_first()
    scene.not_ready(1, seconds=3600)
    scene.pod(1)["metadata"]["creationTimestamp"] = "2026-12-01T10:00:00Z"

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 1


def test_the_next_one_that_boots_takes_the_change_once_the_first_is_ready_with_it() -> None:
    scene = all_starting(broker={"logLevel": "debug"})
    scene.roll_on(0)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 1


def test_a_broken_broker_does_not_wait_for_the_replay_of_another() -> None:
    scene = healthy_cluster()
    scene.unstarted(0)
    scene.spool(0, files=9, bytes=900)
    scene.crash(2)
    scene.change_spec(broker={"logLevel": "debug"})

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 2
