"""Help for brokers while and after PostgreSQL is away, and the memory of it in the status."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from queen_operator.planning.actions import CloseToPushes, FreeFromBackoff, Rest, SwitchMaintenance, Wait
from queen_operator.planning.observed import DatabaseState, Replay
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.status import zulu
from tests.unit.planning.scene import MINIMAL, NOW, Scene, healthy_cluster


def frozen(*, seconds: int = 10, **postgres: Any) -> Scene:
    scene = healthy_cluster(postgres={**MINIMAL["postgres"], **(postgres or {"onFrozen": "Spool"})})
    scene.database_is(DatabaseState.FROZEN, "no answer from pg:5432 within 3 s")
    since = zulu(NOW - timedelta(seconds=seconds))
    scene.status = {"phase": "Degraded", "database": {"state": "Frozen", "since": since}}
    for index in range(3):
        scene.not_ready(index)
        scene.page(index, answering=False, maintenance=None)
    return scene


def test_a_frozen_database_is_reported_and_nothing_is_switched_by_default() -> None:
    scene = frozen(onFrozen="Report")

    assert scene.action() == Rest()
    condition = scene.condition("DatabaseReachable")
    assert condition is not None
    assert "with postgres.onFrozen: Spool they are spooled" in condition["message"]


def test_every_broker_is_told_to_spool_when_the_user_wants_it() -> None:
    scene = frozen()

    action = scene.action()

    assert isinstance(action, SwitchMaintenance)
    assert action.enabled
    assert [name for name, _ in action.pods] == ["orders-0-abc", "orders-1-abc", "orders-2-abc"]
    assert action.event is EventReason.SPOOLING_STARTED


def test_a_broker_that_would_drop_the_neighbors_of_a_repeated_push_is_not_told_to_spool() -> None:
    scene = frozen(onFrozen="Report")
    scene.change_spec(postgres={"onFrozen": "Spool"})

    action = scene.action()

    assert isinstance(action, Wait), "the setting takes effect with a restart, and none is made in an outage"
    assert action.reason is Reason.DATABASE_AWAY


def test_one_look_without_an_answer_is_not_a_frozen_database() -> None:
    assert not isinstance(frozen(seconds=2).action(), SwitchMaintenance)


def test_who_was_told_is_kept_in_the_status_and_not_told_again() -> None:
    scene = frozen()
    scene.status = scene.make_status()

    assert scene.status["spooling"]["pods"] == ["orders-0-abc", "orders-1-abc", "orders-2-abc"]
    scene.more = {"nudged": frozenset({"pod-0", "pod-1", "pod-2"})}
    assert scene.action() == Rest()
    assert scene.make_status()["spooling"] == scene.status["spooling"]


def test_a_broker_is_told_again_while_it_lasts_since_the_first_time_may_not_have_reached_it() -> None:
    scene = frozen()
    scene.status = scene.make_status()
    scene.more = {"nudged": frozenset({"pod-0", "pod-2"})}

    action = scene.action()

    assert isinstance(action, SwitchMaintenance)
    assert [name for name, _ in action.pods] == ["orders-1-abc"]
    assert scene.make_status()["spooling"]["pods"] == scene.status["spooling"]["pods"]


def test_an_operator_that_alone_has_no_way_to_postgresql_switches_nothing() -> None:
    scene = frozen()
    scene.pods = healthy_cluster(postgres=scene.spec["postgres"]).pods
    for index in range(3):
        scene.page(index, answering=True, maintenance=False)

    assert not isinstance(scene.action(), SwitchMaintenance)


def test_spooling_is_not_forgotten_while_a_broker_is_away() -> None:
    scene = frozen()
    scene.status = scene.make_status()
    scene.database_is(DatabaseState.REACHABLE, "")
    for index in range(3):
        scene.page(index, answering=True, maintenance=False)
    scene.crash(1)

    assert "spooling" in scene.make_status()


def test_spooling_ends_at_every_broker_once_postgresql_answers() -> None:
    scene = frozen()
    scene.status = scene.make_status()
    scene.database_is(DatabaseState.REACHABLE, "")
    for index in range(3):
        scene.page(index, answering=True, maintenance=index != 1)

    action = scene.action()
    assert isinstance(action, SwitchMaintenance)
    assert not action.enabled
    assert [name for name, _ in action.pods] == ["orders-0-abc", "orders-2-abc"]
    assert "spooling" in scene.make_status()

    for index in range(3):
        scene.page(index, maintenance=False)
    assert not isinstance(scene.action(), SwitchMaintenance)
    assert "spooling" not in scene.make_status()


def test_spooling_is_not_ended_while_postgresql_refuses() -> None:
    scene = frozen()
    scene.status = scene.make_status()
    scene.database_is(DatabaseState.REFUSED)

    assert not isinstance(scene.action(), SwitchMaintenance)
    assert "spooling" in scene.make_status()


def test_maintenance_mode_that_a_person_switched_on_is_left_on() -> None:
    scene = healthy_cluster()
    for index in range(3):
        scene.page(index, maintenance=True)
    scene.spool(0, files=5)

    assert scene.action() == Rest()


def test_without_a_token_nothing_is_switched() -> None:
    scene = frozen()
    scene.more = {"token_missing": True}

    assert scene.action() == Rest()


def stuck(**changes: Any) -> Scene:
    scene = healthy_cluster()
    scene.spool(1, files=3, bytes=300)
    fields = {"first_files": 9, "progress_at": NOW - timedelta(seconds=90), **changes}
    scene.more = {"replays": {"pod-1": Replay(**fields)}}
    return scene


def test_a_drain_that_stands_still_is_set_going() -> None:
    action = stuck().action()

    assert isinstance(action, SwitchMaintenance)
    assert (action.enabled, [name for name, _ in action.pods]) == (False, ["orders-1-abc"])
    assert action.event is EventReason.DRAIN_STARTED


def test_a_minute_without_postgresql_is_no_minute_in_which_a_drain_stood_still() -> None:
    scene = stuck()
    assert scene.database is not None
    scene.database = replace(scene.database, state_since=NOW - timedelta(seconds=2))

    assert scene.action() == Rest()

    scene.database = replace(scene.database, state_since=NOW - timedelta(seconds=70))
    assert isinstance(scene.action(), SwitchMaintenance)


def test_a_drain_whose_files_take_long_is_given_ten_times_the_last_one() -> None:
    assert stuck(last_step_seconds=12.0).action() == Rest()
    assert isinstance(stuck(last_step_seconds=8.0).action(), SwitchMaintenance)


def test_a_drain_is_not_set_going_again_before_it_could_show() -> None:
    scene = stuck()
    scene.more["nudged"] = frozenset({"pod-1"})

    assert scene.action() == Rest()


def test_a_drain_is_left_alone_while_postgresql_is_away_or_maintenance_is_on() -> None:
    away, kept = stuck(), stuck()
    away.database_is(DatabaseState.REFUSED)
    kept.page(1, maintenance=True)

    assert away.action() == Rest()
    assert kept.action() == Rest()


def crashed(*, last: str = "FATAL: schema apply failed: db error") -> Scene:
    scene = healthy_cluster()
    scene.crash(1, last=last)
    container = scene.pod(1)["status"]["containerStatuses"][0]
    container["lastState"]["terminated"]["finishedAt"] = zulu(NOW - timedelta(seconds=40))
    since = zulu(NOW - timedelta(seconds=3))
    scene.status = {"phase": "Degraded", "database": {"state": "Reachable", "since": since}}
    return scene


def test_a_broker_that_crashed_for_want_of_postgresql_is_freed_from_the_back_off() -> None:
    action = crashed().action()

    assert isinstance(action, FreeFromBackoff)
    assert (action.pod, action.uid) == ("orders-1-abc", "pod-1")
    assert "PostgreSQL is back" in action.message


def test_a_broker_that_crashes_of_something_else_waits_out_its_back_off() -> None:
    assert crashed(last="FATAL: cannot bind").action() == Rest()


def test_a_broker_that_crashed_after_postgresql_was_back_is_not_freed_again_and_again() -> None:
    scene = crashed()
    container = scene.pod(1)["status"]["containerStatuses"][0]
    container["lastState"]["terminated"]["finishedAt"] = zulu(NOW - timedelta(seconds=1))

    assert scene.action() == Rest()


def young_mesh(alive: int, *, ready_seconds: int) -> Scene:
    scene = healthy_cluster()
    scene.change_spec(broker={"logLevel": "debug"})
    scene.roll_on(0)
    scene.pod(0)["status"]["conditions"][0]["lastTransitionTime"] = zulu(NOW - timedelta(seconds=ready_seconds))
    for index in range(3):
        scene.page(index, servers_alive=alive)
    return scene


def test_the_next_broker_waits_until_the_new_one_is_heard_on_the_mesh() -> None:
    action = young_mesh(1, ready_seconds=10).action()

    assert isinstance(action, Wait)
    assert action.reason is Reason.MESH_INCOMPLETE
    assert "hears 1 of 2 other brokers on the mesh" in action.message


def test_a_mesh_that_never_closes_does_not_hold_a_rollout_for_ever() -> None:
    assert isinstance(young_mesh(1, ready_seconds=30).action(), CloseToPushes)
    assert isinstance(young_mesh(2, ready_seconds=10).action(), CloseToPushes)


def test_an_unknown_mesh_holds_nothing() -> None:
    scene = young_mesh(2, ready_seconds=10)
    for index in range(3):
        scene.page(index, servers_alive=None)

    assert isinstance(scene.action(), CloseToPushes)
