"""Restarts: one broker at a time, behind every guard, each with the sentence that the user reads."""

from datetime import timedelta
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests.config import RestartCause
from queen_operator.planning.actions import CloseToPushes, OpenToPushes, Rest, RestartBroker, Wait
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.reasons import Reason
from tests.unit.planning.rollouts import assert_waits, closed, wants_restart
from tests.unit.planning.scene import NOW, healthy_cluster


def test_a_healthy_cluster_is_left_alone() -> None:
    assert healthy_cluster().action() == Rest()


def test_a_broker_leaves_the_push_service_before_it_is_stopped() -> None:
    scene = wants_restart()

    action = scene.action()

    assert isinstance(action, CloseToPushes)
    assert action.pod == "orders-0-abc"
    assert action.leaving_since == NOW.isoformat()


def test_a_broker_is_stopped_two_seconds_after_it_left_the_push_service() -> None:
    scene = wants_restart()
    closed(scene, 0, seconds=1)
    assert_waits(scene, Reason.RESTARTING, "has left the push Service")

    closed_longer = wants_restart()
    closed(closed_longer, 0, seconds=2)
    action = closed_longer.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 0
    assert action.causes == (RestartCause.ENVIRONMENT,)
    assert action.manifest["metadata"]["uid"] == "deployment-orders-0"
    assert "orders-0 is restarted: the settings of the broker were changed." in action.message


def test_a_broker_whose_deployment_was_changed_stays_out_of_the_push_service_until_its_pod_goes() -> None:
    scene = wants_restart()
    closed(scene, 0, seconds=3)
    scene.deployments["orders-0"] |= {"spec": scene.wanted.deployments[0]["spec"]}
    scene.deployments["orders-0"]["metadata"]["generation"] += 1

    assert isinstance(scene.action(), Wait)


def test_a_broker_whose_restart_is_held_goes_back_into_the_push_service() -> None:
    scene = wants_restart()
    closed(scene, 0, seconds=5)
    scene.spool(1, files=3, bytes=300)

    assert scene.action() == OpenToPushes("orders-0-abc", "pod-0")


def test_the_next_broker_follows_once_the_first_counts() -> None:
    scene = wants_restart()
    scene.roll_on(0)

    action = scene.action()

    assert isinstance(action, CloseToPushes)
    assert action.pod == "orders-1-abc"


def test_a_broker_that_was_just_restarted_is_waited_for() -> None:
    scene = wants_restart()
    scene.roll_on(0)
    scene.not_ready(0)

    assert_waits(scene, Reason.BROKER_AWAY, "orders-1 is to be restarted and waits", "orders-0 is not Ready")


def test_ready_for_less_than_min_ready_seconds_does_not_count() -> None:
    scene = wants_restart(rollout={"minReadySeconds": 30}, broker={"logLevel": "debug"})
    scene.roll_on(0)
    ready = scene.pod(0)["status"]["conditions"][0]
    ready["lastTransitionTime"] = (NOW - timedelta(seconds=10)).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert_waits(scene, Reason.RESTARTING, "orders-0 has been Ready for less than 30 s")


def test_a_deployment_that_its_controller_has_not_seen_does_not_count() -> None:
    scene = wants_restart()
    scene.roll_on(0)
    scene.deployments["orders-0"]["status"]["observedGeneration"] = 1

    assert isinstance(scene.action(), Wait)


def test_a_broken_broker_that_is_out_of_date_is_cured_first_and_unguarded() -> None:
    scene = wants_restart()
    scene.crash(2, reason="ImagePullBackOff")
    scene.spool(0, files=5, bytes=500)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 2


def test_a_bad_change_stops_at_the_first_broker() -> None:
    scene = wants_restart(image="queen:does-not-exist")
    scene.roll_on(0)
    scene.crash(0, reason="ImagePullBackOff")

    assert_waits(scene, Reason.POD_CANNOT_START, "orders-0", "ImagePullBackOff")
    assert scene.condition("Stalled") is not None
    assert scene.make_status()["phase"] == "Blocked"


def test_the_old_spec_put_back_begins_with_the_broken_broker() -> None:
    scene = wants_restart(image="queen:does-not-exist")
    scene.roll_on(0)
    scene.crash(0, reason="ImagePullBackOff")
    scene.change_spec(image=None)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 0


def test_a_crashing_broker_waits_for_the_database_unless_the_connection_changes() -> None:
    scene = wants_restart()
    scene.database_is(DatabaseState.REFUSED)
    scene.crash(1)

    assert_waits(scene, Reason.DATABASE_AWAY, "No broker is restarted until it is back")


def test_a_new_connection_is_tried_by_one_broker_while_postgresql_is_away() -> None:
    scene = wants_restart(postgres={"host": "other"})
    scene.database_is(DatabaseState.REFUSED)
    for index in range(3):
        scene.not_ready(index)
    closed(scene, 0, seconds=5)

    first = scene.action()
    scene.roll_on(0)
    scene.not_ready(0)
    second = scene.action()

    assert isinstance(first, RestartBroker)
    assert first.index == 0
    assert isinstance(second, Wait)
    assert second.reason is Reason.CONNECTION_TRIED
    assert "orders-0 tries the new connection" in second.message


def test_the_others_follow_a_new_connection_once_one_broker_is_ready_with_it() -> None:
    scene = wants_restart(postgres={"host": "other"})
    for index in range(3):
        scene.not_ready(index)
        scene.spool(index, files=3, bytes=30)
    closed(scene, 1, seconds=5)
    scene.roll_on(0)
    scene.claims["orders-spool-0"]["metadata"]["annotations"] = {names.DATABASE_ANNOTATION: "other:5432/queen"}

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 1


def test_a_replaying_broker_is_not_restarted_for_a_change() -> None:
    scene = wants_restart()
    scene.unstarted(1)
    scene.spool(1, files=12, bytes=1200)

    assert_waits(scene, Reason.REPLAYING, "orders-1 replays its spool (12 files left)")


def test_no_broker_is_restarted_into_a_secret_that_lacks_its_key() -> None:
    scene = wants_restart()
    first = scene.references[0]
    problem = "The key password of the Secret orders-postgres is missing."
    scene.references = (type(first)(first.secret, first.key, first.purpose, None, problem), *scene.references[1:])

    assert_waits(scene, Reason.SECRET_MISSING, problem)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"version": "1.4.0"}, RestartCause.VERSION),
        ({"image": "queen:x"}, RestartCause.IMAGE),
        ({"resources": {"limits": {"memory": "2Gi"}}}, RestartCause.RESOURCES),
        ({"postgres": {"host": "other"}}, RestartCause.CONNECTION),
    ],
)
def test_each_cause_is_named(change: dict[str, Any], cause: RestartCause) -> None:
    scene = wants_restart(**change)
    scene.crash(0)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert cause in action.causes


def test_an_operator_that_renders_differently_restarts_nothing_and_says_so() -> None:
    scene = healthy_cluster()
    for deployment in scene.deployments.values():
        deployment["metadata"]["annotations"][names.RENDERED_ANNOTATION] = "another"
        deployment["spec"]["template"]["spec"]["initContainers"][0]["image"] = "keeper:0"

    assert scene.action() == Rest()
    condition = scene.condition("RestartPending")
    assert condition is not None
    assert condition["status"] == "True"
    assert condition["reason"] == "RenderingChanged"
    assert scene.make_status()["phase"] == "Ready"


def test_a_restart_that_the_server_refuses_is_not_sent_again_and_again() -> None:
    scene = wants_restart()
    scene.crash(0)
    scene.more = {"refused": {("Deployment", f"orders-{index}"): "exceeded quota" for index in range(3)}}

    assert scene.action() == Rest()
    ready = scene.condition("Ready")
    assert ready is not None
    assert "The API server refuses Deployment orders-0: exceeded quota" in ready["message"]


def test_of_two_pods_of_one_broker_the_running_one_counts_and_not_the_newest() -> None:
    scene = wants_restart()
    scene.roll_on(1)
    scene.not_ready(1)
    second = {**scene.pod(0), "metadata": {**scene.pod(0)["metadata"], "name": "orders-0-new", "uid": "new"}}
    second["metadata"]["creationTimestamp"] = "2026-12-01T11:59:00Z"
    second["status"] = {"phase": "Pending", "conditions": []}
    scene.pods.append(second)

    assert_waits(scene, Reason.BROKER_AWAY, "orders-1 is not Ready")


def test_a_booting_broker_whose_keeper_was_not_asked_may_be_replaying() -> None:
    scene = wants_restart()
    scene.unstarted(1)
    scene.forget_spool(1)

    assert_waits(scene, Reason.SPOOL_UNKNOWN, "it may be replaying")


def test_a_broker_is_not_restarted_while_its_deleted_claim_holds_messages() -> None:
    scene = wants_restart()
    scene.claims["orders-spool-1"]["metadata"]["deletionTimestamp"] = "2026-12-01T11:59:00Z"
    scene.crash(1)
    scene.spool(1, files=500, bytes=5000)

    assert_waits(scene, Reason.CLAIM_DELETED, "what its spool holds with it")


def test_a_new_connection_is_not_followed_over_a_deleted_claim() -> None:
    scene = wants_restart(postgres={"host": "other"})
    for index in range(3):
        scene.not_ready(index)
        scene.claims[f"orders-spool-{index}"]["metadata"]["deletionTimestamp"] = "2026-12-01T11:59:00Z"

    assert_waits(scene, Reason.CLAIM_DELETED, "what its spool holds with it")
