"""Guards of a restart: each holds it back with the sentence that the user reads."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.planning.actions import CloseToPushes, OpenToPushes, RestartBroker
from queen_operator.planning.observed import DatabaseState, Replay
from queen_operator.planning.reasons import Reason
from tests.unit.planning.rollouts import assert_waits, cordoned, serving, wants_restart
from tests.unit.planning.scene import NOW, UID


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
