"""The end of a QueenCluster: at once by default, and with DeleteWhenEmpty only after every spool was proved empty."""

from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.planning.actions import (
    AnnotateClaim,
    DeleteChild,
    MakeReportPods,
    Rest,
    SetFinalizer,
)
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.proof import FOREGROUND_FINALIZER
from queen_operator.planning.reasons import EventReason
from tests.unit.planning.world import World, living

WHEN_EMPTY = {"onDelete": "DeleteWhenEmpty"}


def deleted(**spool: Any) -> World:
    """A cluster with DeleteWhenEmpty that has just been deleted."""
    world = living(spool={**WHEN_EMPTY, **spool})
    world.run()
    world.done.clear()
    world.scene.deleting = True
    return world


def released(world: World) -> SetFinalizer:
    found: list[SetFinalizer] = world.did(SetFinalizer, present=False)
    assert len(found) == 1
    return found[0]


def test_a_deletion_does_nothing_by_default() -> None:
    world = living()
    world.scene.deleting = True

    assert world.scene.finalizers == []
    assert world.step() == Rest()


def test_the_finalizer_is_there_only_with_delete_when_empty_and_comes_before_anything_else() -> None:
    world = living(spool=WHEN_EMPTY)
    world.scene.others.clear()
    first = world.step()
    assert isinstance(first, SetFinalizer)
    assert first.present

    world.run()
    world.scene.change_spec(spool={"onDelete": "Retain"})
    world.run()
    assert world.scene.finalizers == []


def test_delete_when_empty_drains_every_broker_proves_every_volume_and_lets_go() -> None:
    world = deleted()
    volumes = [world.volume(index) for index in range(3)]
    for number, volume in enumerate(volumes):
        volume.files = 2 + number
    world.run()

    assert world.gone
    assert world.scene.claims == {}
    assert [volume.drained for volume in volumes] == [2, 3, 4]
    assert world.stopped == [2, 1, 0]
    assert released(world).unproved is False
    assert world.scene.pods == []


def test_a_deleted_cluster_says_what_it_does_and_counts_no_broker_as_wanted() -> None:
    world = deleted()
    world.step()

    assert (world.scene.status["phase"], world.scene.status["ready"]) == ("Deleting", "0/0")
    assert "orders-0, orders-1, orders-2 are taken away" in world.scene.status["message"]


def test_a_deletion_waits_for_postgresql_with_messages_in_the_spools() -> None:
    world = deleted()
    world.volume(1).files = 3
    world.scene.database_is(DatabaseState.REFUSED)
    for _ in range(30):
        world.step()
    assert not world.gone
    assert set(world.scene.claims) == {"orders-spool-0", "orders-spool-1", "orders-spool-2"}

    world.scene.database_is(DatabaseState.REACHABLE, "")
    world.run()
    assert world.gone
    assert released(world).unproved is False


def test_quarantined_files_keep_a_deleted_cluster_and_every_other_broker_goes() -> None:
    world = deleted()
    world.volume(1).quarantined = 4
    world.run()

    assert not world.gone
    assert set(world.scene.claims) == {"orders-spool-1"}
    assert world.scene.make_status()["phase"] == "Blocked"
    assert (
        "orders-1 is to be taken away and waits: it holds 4 quarantined files" in world.scene.make_status()["message"]
    )


def test_on_delete_back_to_retain_lets_go_while_it_is_being_deleted() -> None:
    world = deleted()
    world.volume(1).quarantined = 4
    world.run()
    world.scene.change_spec(spool={"onDelete": "Retain"})
    world.run()

    assert world.gone
    assert set(world.scene.claims) == {"orders-spool-1"}
    assert released(world).unproved is False


def test_claims_that_others_deleted_hold_nothing_up_and_are_told_as_unproved() -> None:
    world = deleted()
    world.scene.deployments, world.scene.pods, world.scene.claims = {}, [], {}
    world.step()

    assert world.gone
    assert released(world).unproved
    assert released(world).message == (
        "Nothing of orders-0, orders-1, orders-2 is left to drain: their claims were deleted by others, unproved."
    )


@pytest.mark.parametrize("at_step", range(0, 40, 3))
def test_claims_that_vanish_half_way_name_only_the_brokers_that_were_not_proved(at_step: int) -> None:
    world = deleted()
    for _ in range(at_step):
        world.step()
    left = {name for name in world.scene.claims if "deletionTimestamp" not in world.scene.claims[name]["metadata"]}
    brokers = {name.replace("-spool", "") for name in left}
    world.scene.deployments, world.scene.pods, world.scene.claims = {}, [], {}
    world.run()

    assert released(world).unproved is bool(left)
    assert {name for name in ("orders-0", "orders-1", "orders-2") if name in released(world).message} == brokers


def test_a_claim_that_never_had_a_volume_is_deleted_and_not_called_unproved() -> None:
    world = deleted()
    world.scene.deployments, world.scene.pods = {}, []
    for claim in world.scene.claims.values():
        del claim["spec"]["volumeName"]
        claim["status"] = {"phase": "Pending"}
    world.volumes.clear()
    world.run()

    assert world.gone
    assert world.did(MakeReportPods) == []
    assert released(world).unproved is False


def test_a_deletion_in_the_foreground_takes_the_brokers_first_and_volumes_are_proved_empty_all_the_same() -> None:
    world = deleted()
    foreground(world)
    live(world)

    assert set(world.scene.claims) == {"orders-spool-0", "orders-spool-1", "orders-spool-2"}
    assert world.did(MakeReportPods) == [], "it would be collected, or refused for want of its account"
    assert "in the foreground" in world.scene.make_status()["message"]

    collected(world)
    world.run()

    assert world.gone
    assert world.scene.claims == {}
    assert released(world).unproved is False
    assert ("ServiceAccount", "orders") in world.scene.others
    assert len(world.did(MakeReportPods)) == 3
    for action in world.did(MakeReportPods):
        assert all("ownerReferences" not in pod["metadata"] for pod in action.manifests), "it would be collected"


def test_a_deletion_in_the_foreground_drains_what_the_brokers_left_once_postgresql_is_there() -> None:
    world = deleted()
    volume = world.volume(2)
    volume.files = 30
    world.scene.database_is(DatabaseState.REFUSED)
    world.step()
    foreground(world)
    live(world)
    collected(world)
    live(world)

    assert len(world.scene.claims) == 3
    assert volume.files == 30
    message = world.scene.make_status()["message"]
    assert "its volume holds 30 files with 300 messages (3000 bytes)" in message
    assert "PostgreSQL, which is away (ConnectionRefused)" in message

    world.scene.database_is(DatabaseState.REACHABLE, "")
    world.run()

    assert world.gone
    assert volume.drained == 30
    assert released(world).unproved is False


def test_an_account_that_cannot_be_made_keeps_the_claims_and_is_told() -> None:
    world = deleted()
    foreground(world)
    collected(world)
    world.scene.more["refused"] = {("ServiceAccount", "orders"): "quota exceeded"}
    live(world)

    assert len(world.scene.claims) == 3
    assert world.scene.make_status()["phase"] == "Blocked"
    assert "quota exceeded" in world.scene.make_status()["message"]


def foreground(world: World) -> None:
    """The garbage collector takes what the resource owns before the resource goes."""
    world.scene.finalizers = [names.DRAIN_FINALIZER, FOREGROUND_FINALIZER]
    world.scene.deployments = {}
    world.scene.others = {key: item for key, item in world.scene.others.items() if key[0] == "PersistentVolumeClaim"}


def live(world: World) -> None:
    """Let it live for longer than what waits would need if it did not wait."""
    for _ in range(40):
        world.step()


def collected(world: World) -> None:
    """Nothing is left that the resource owns: the garbage collector lets it go."""
    world.scene.finalizers = [names.DRAIN_FINALIZER]


def test_a_kept_claim_goes_too_once_it_is_proved_empty_and_drained_first_if_it_is_not() -> None:
    world = living(replicas=4, spool={**WHEN_EMPTY, "onScaleDown": "Retain"})
    world.scene.change_spec(replicas=2)
    world.run()
    kept = world.volume(3)
    kept.files = 3  # somebody put files back
    world.scene.deleting = True
    world.run()

    assert world.gone
    assert world.scene.claims == {}
    assert kept.drained == 3


def test_messages_of_another_database_are_not_replayed_into_this_one_by_a_deletion() -> None:
    world = living(replicas=3, spool={**WHEN_EMPTY, "onScaleDown": "Retain"})
    world.scene.change_spec(replicas=2)
    world.run()
    kept = world.volume(2)
    kept.files = 3
    world.scene.claims["orders-spool-2"]["metadata"]["annotations"][names.DATABASE_ANNOTATION] = "old:5432/queen"
    world.scene.deleting = True
    world.run()

    assert (kept.files, kept.drained) == (3, 0)
    assert not world.gone
    assert "which belong to another database (old:5432/queen)" in world.scene.make_status()["message"]


def test_an_operator_that_was_away_all_the_time_goes_on_with_a_deletion() -> None:
    for at_step in range(0, 36, 5):
        world = deleted()
        for _ in range(at_step):
            world.step()
        world.lose_memory()
        world.run()

        assert world.gone
        assert released(world).unproved is False


def test_a_paused_cluster_that_is_deleted_keeps_everything() -> None:
    world = deleted()
    world.scene.change_spec(paused=True)
    world.run()

    assert not world.gone
    assert len(world.scene.claims) == 3


def test_the_events_of_a_deletion_name_each_claim() -> None:
    world = deleted()
    world.run()

    gone = world.did(DeleteChild, event=EventReason.CLAIM_DELETED)
    assert [action.name for action in gone] == ["orders-spool-2", "orders-spool-1", "orders-spool-0"]
    assert len(world.did(AnnotateClaim)) == 3, "one mark each, and none is written twice"
