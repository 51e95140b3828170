"""Restarts: one broker at a time, behind every guard, each with the sentence that the user reads."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.manifests.config import RestartCause
from queen_operator.planning.actions import CloseToPushes, OpenToPushes, Rest, RestartBroker, Wait
from queen_operator.planning.observed import DatabaseState, Replay
from queen_operator.planning.reasons import Reason
from queen_operator.planning.views import LEAVING_ANNOTATION
from tests.unit.planning.scene import NOW, UID, Scene, healthy_cluster


def wants_restart(**change: Any) -> Scene:
    scene = healthy_cluster()
    scene.change_spec(**(change or {"broker": {"logLevel": "debug"}}))
    return scene


def closed(scene: Scene, index: int, *, seconds: float) -> None:
    meta = scene.pod(index)["metadata"]
    meta["labels"].pop(names.PUSH_LABEL)
    meta["annotations"] = {**meta["annotations"], LEAVING_ANNOTATION: (NOW - timedelta(seconds=seconds)).isoformat()}


def cordoned(scene: Scene, index: int, *, seconds: float) -> None:
    """It is being taken away, and has been out of both Services for so long."""
    closed(scene, index, seconds=seconds)
    scene.pod(index)["metadata"]["labels"].pop(names.SERVE_LABEL)


def assert_waits(scene: Scene, reason: Reason, *words: str) -> None:
    action = scene.action()

    assert isinstance(action, Wait), action
    assert action.reason is reason, action
    for word in words:
        assert word in action.message


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


def test_no_broker_is_stopped_while_another_holds_a_spool() -> None:
    scene = wants_restart()
    scene.spool(2, files=4, bytes=4000)

    assert_waits(scene, Reason.SPOOL_NOT_EMPTY, "orders-2 still holds 4 spool files (4000 bytes)")


def test_an_unknown_spool_is_never_an_empty_one() -> None:
    scene = wants_restart()
    scene.forget_spool(1)

    assert_waits(scene, Reason.SPOOL_UNKNOWN, "orders-1", "unknown is not empty")


def test_an_old_answer_of_a_keeper_is_unknown() -> None:
    scene = wants_restart()
    scene.spool(1, asked_at=NOW - timedelta(seconds=20))

    assert_waits(scene, Reason.SPOOL_UNKNOWN, "orders-1 has not answered lately; unknown is not empty")


def test_an_answer_from_before_the_broker_was_ready_does_not_count() -> None:
    scene = wants_restart()
    scene.roll_on(0)
    scene.pod(0)["status"]["conditions"][0]["lastTransitionTime"] = "2026-12-01T11:59:50Z"
    scene.spool(0, asked_at=NOW - timedelta(seconds=15))

    assert_waits(scene, Reason.SPOOL_UNKNOWN, "orders-0")


def test_a_broker_with_a_full_spool_is_never_stopped() -> None:
    scene = wants_restart()
    scene.spool(0, files=9, bytes=900, oldest_age_seconds=5.0)

    assert_waits(scene, Reason.SPOOL_DRAINING, "orders-0 drains its spool first: 9 files")


def test_a_spool_that_does_not_drain_stalls_the_rollout_and_says_since_when() -> None:
    scene = wants_restart()
    scene.spool(0, files=9, bytes=900, oldest_age_seconds=9000.0)
    scene.more = {"nudged": frozenset({"pod-0"})}

    scene.more["replays"] = {"pod-0": Replay(99, NOW - timedelta(seconds=500))}
    assert_waits(scene, Reason.SPOOL_DRAINING, "9 files")

    scene.more["replays"] = {"pod-0": Replay(99, NOW - timedelta(seconds=700))}
    assert_waits(scene, Reason.SPOOL_STUCK, "no file went away for longer than spoolDeadline, 600 s")
    assert scene.condition("Stalled") is not None


def test_no_broker_is_stopped_while_another_is_not_ready() -> None:
    scene = wants_restart()
    scene.roll_on(2)
    scene.not_ready(2)

    assert_waits(scene, Reason.BROKER_AWAY, "orders-2 is not Ready")


def test_the_broker_that_is_not_ready_goes_before_one_that_serves() -> None:
    scene = wants_restart()
    scene.not_ready(2)

    action = scene.action()

    assert isinstance(action, CloseToPushes)
    assert action.pod == "orders-2-abc"


def test_a_pod_that_others_delete_counts_as_away_although_it_says_ready() -> None:
    scene = wants_restart()
    scene.roll_on(1)
    scene.leave(1)
    scene.pod(1)["metadata"]["labels"].pop(names.PUSH_LABEL)

    assert_waits(scene, Reason.BROKER_LEAVING, "orders-1 is leaving")


def test_a_change_reaches_a_broker_that_is_leaving_anyway_and_no_other() -> None:
    scene = wants_restart()
    scene.leave(1)
    scene.pod(1)["metadata"]["labels"].pop(names.PUSH_LABEL)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 1


def test_maintenance_mode_holds_every_restart() -> None:
    scene = wants_restart()
    scene.page(1, maintenance=True)

    assert_waits(scene, Reason.MAINTENANCE, "maintenance mode is on at orders-1")


@pytest.mark.parametrize("state", [DatabaseState.REFUSED, DatabaseState.FROZEN, DatabaseState.READ_ONLY])
def test_no_restart_while_postgresql_is_away(state: DatabaseState) -> None:
    scene = wants_restart()
    scene.database_is(state, "no answer from pg:5432")

    assert_waits(scene, Reason.DATABASE_AWAY, "PostgreSQL is away", "no answer from pg:5432")


def test_a_frozen_database_is_noticed_by_the_pages_alone() -> None:
    scene = wants_restart()
    scene.database_is(DatabaseState.UNKNOWN, "")
    scene.page(2, answering=False)

    assert_waits(scene, Reason.DATABASE_AWAY, "PostgreSQL does not answer orders-2")


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


def test_nothing_is_restarted_before_postgresql_was_asked() -> None:
    scene = wants_restart()
    scene.crash(0)
    scene.database = None

    assert_waits(scene, Reason.DATABASE_UNKNOWN, "PostgreSQL has not been asked yet")


def test_an_old_look_at_postgresql_allows_no_restart() -> None:
    scene = wants_restart()
    assert scene.database is not None
    scene.database = replace(scene.database, asked_at=NOW - timedelta(seconds=60))

    assert_waits(scene, Reason.DATABASE_UNKNOWN, "PostgreSQL has not been asked lately")


def test_a_broker_whose_own_database_read_failed_holds_the_rollout() -> None:
    scene = wants_restart()
    scene.page(2, cluster_series=False)

    assert_waits(scene, Reason.DATABASE_AWAY, "PostgreSQL does not answer orders-2")


@pytest.mark.parametrize("changes", [{"alive": False}, {"asked_at": NOW - timedelta(seconds=60)}])
def test_no_broker_is_stopped_while_another_does_not_answer(changes: dict[str, Any]) -> None:
    scene = wants_restart()
    scene.page(1, **changes)

    assert_waits(scene, Reason.BROKER_AWAY, "orders-1 has not answered lately")


def test_an_operator_that_alone_has_no_way_to_postgresql_rolls_on_at_the_word_of_the_brokers() -> None:
    scene = wants_restart()
    assert scene.database is not None
    scene.database_is(DatabaseState.REJECTED, "no pg_hba.conf entry")
    scene.database = replace(scene.database, state_since=NOW - timedelta(seconds=40))

    assert isinstance(scene.action(), CloseToPushes)

    scene.database = replace(scene.database, state_since=NOW - timedelta(seconds=5))
    assert_waits(scene, Reason.DATABASE_AWAY, "no pg_hba.conf entry")


def serving(scene: Scene, index: int) -> None:
    """It is in both Services again."""
    pod = scene.pod(index)
    pod["metadata"]["labels"] |= {names.SERVE_LABEL: "true", names.PUSH_LABEL: "true"}
    pod["metadata"]["annotations"].pop(LEAVING_ANNOTATION, None)


def test_a_broker_that_is_taken_away_serves_until_the_restarts_are_done_and_holds_them_while_it_drains() -> None:
    scene = wants_restart()
    scene.change_spec(replicas=2)
    scene.roll_on(1)
    cordoned(scene, 2, seconds=5)
    scene.spool(2, files=99, bytes=990)

    assert scene.action() == OpenToPushes("orders-2-abc", "pod-2"), "beside a restart it would be the second one away"
    serving(scene, 2)
    assert_waits(scene, Reason.SPOOL_NOT_EMPTY, "orders-2 still holds 99 spool files")


def test_a_broker_that_is_taken_away_and_cannot_drain_holds_no_restart() -> None:
    scene = wants_restart()
    scene.change_spec(replicas=2)
    scene.roll_on(1)
    cordoned(scene, 2, seconds=5)
    scene.spool(2, files=99, bytes=990)
    scene.more = {"nudged": frozenset({"pod-2"}), "replays": {"pod-2": Replay(99, NOW - timedelta(seconds=700))}}
    serving(scene, 2)

    action = scene.action()

    assert isinstance(action, CloseToPushes)
    assert (action.pod, action.cordon) == ("orders-0-abc", False)
    waiting = scene.make_status()["brokers"][2]["waitingFor"]
    assert "it serves until the brokers that stay have been restarted" in waiting


def test_a_pod_that_ends_with_the_deployment_that_we_deleted_holds_a_restart() -> None:
    scene = wants_restart()
    scene.change_spec(replicas=2)
    cordoned(scene, 2, seconds=5)
    scene.claims["orders-spool-2"]["metadata"]["annotations"][names.REMOVING_ANNOTATION] = UID
    del scene.deployments["orders-2"]  # the garbage collector has not come to the pod yet

    assert_waits(scene, Reason.BROKER_LEAVING, "orders-2 is leaving (pod orders-2-abc)")
    assert scene.condition("Stalled") is None


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
