"""A changed connection is tried by one broker, and what is wrong with it is said in PostgreSQL's words."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from queen_operator.planning.actions import RestartBroker, Wait
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.reasons import Reason
from tests.unit.planning.scene import NOW, Scene, healthy_cluster

WORDS = 'PostgreSQL at pg:5432 says: password authentication failed for user "queen"'


def tried_by_the_first(state: DatabaseState = DatabaseState.REJECTED, *, restarts: int = 3) -> Scene:
    """Broker 0 has the new connection and crashes; the others are Ready with the old one, for longer than an outage."""
    scene = healthy_cluster()
    scene.change_spec(postgres={"user": "other"})
    scene.roll_on(0)
    scene.crash(0, last="FATAL: schema apply failed: db error")
    scene.pod(0)["status"]["containerStatuses"][0]["restartCount"] = restarts
    scene.database_is(state, WORDS)
    assert scene.database is not None
    scene.database = replace(scene.database, state_since=NOW - timedelta(seconds=120))
    return scene


def test_a_wrong_connection_stops_at_the_first_broker_with_postgresqls_own_words() -> None:
    scene = tried_by_the_first()

    action = scene.action()
    stalled, status = scene.condition("Stalled"), scene.make_status()

    assert isinstance(action, Wait)
    assert action.reason is Reason.CONNECTION_TRIED
    assert "orders-0 tries the new connection" in action.message
    assert stalled is not None
    assert WORDS in stalled["message"]
    assert status["phase"] == "Blocked"
    assert status["database"]["state"] == "Rejected"


def test_brokers_with_the_old_connection_say_nothing_about_the_new_one() -> None:
    reachable = tried_by_the_first().condition("DatabaseReachable")

    assert reachable is not None
    assert (reachable["status"], reachable["reason"]) == ("False", "Rejected")
    assert WORDS in reachable["message"]


def test_a_host_whose_name_cannot_be_looked_up_is_told_although_brokers_are_ready_with_the_old_one() -> None:
    scene = tried_by_the_first(DatabaseState.UNKNOWN)

    stalled, reachable = scene.condition("Stalled"), scene.condition("DatabaseReachable")

    assert stalled is not None
    assert "orders-0: the broker ended 4 times, last with: FATAL: schema apply failed" in stalled["message"]
    assert WORDS in stalled["message"]
    assert reachable is not None
    assert (reachable["status"], reachable["message"]) == ("Unknown", WORDS)


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_first_crash_with_a_new_connection_calls_nobody_since_the_password_may_be_changed_a_moment_later(
    restarts: int,
) -> None:
    scene = tried_by_the_first(restarts=restarts)

    assert isinstance(scene.action(), Wait)
    assert scene.condition("Stalled") is None


def test_a_broker_that_is_late_with_a_connection_that_hangs_calls_a_person() -> None:
    scene = tried_by_the_first(DatabaseState.FROZEN, restarts=0)
    scene.pod(0)["status"]["containerStatuses"][0] |= {"state": {"running": {}}, "started": False}
    assert scene.condition("Stalled") is None

    scene.not_ready(0, seconds=3600)

    assert scene.condition("Stalled") is not None


def test_the_old_connection_put_back_restarts_the_one_broker_that_tried_and_no_other() -> None:
    scene = tried_by_the_first()
    scene.change_spec(postgres={"user": "queen"})

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.index == 0
    assert {item["name"]: item.get("waitingFor", "") for item in scene.make_status()["brokers"]}["orders-1"] == ""


def test_the_others_follow_when_the_first_is_ready_although_the_operator_itself_has_no_way_there() -> None:
    scene = tried_by_the_first()
    scene.roll_on(0)

    action: Any = scene.action()

    assert action.pod == "orders-1-abc"


@pytest.mark.parametrize("seconds", [5, 3600])
def test_a_role_without_connections_left_is_told_however_long_brokers_stay_ready(seconds: int) -> None:
    scene = healthy_cluster()
    scene.database_is(DatabaseState.TOO_MANY_CONNECTIONS, 'too many connections for role "queen"')
    assert scene.database is not None
    scene.database = replace(scene.database, state_since=NOW - timedelta(seconds=seconds))

    reachable = scene.condition("DatabaseReachable")

    assert reachable is not None
    assert reachable["reason"] == "TooManyConnections"
    assert 'too many connections for role "queen"' in reachable["message"]
