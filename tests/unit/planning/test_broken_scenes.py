"""Scenes in which messages were lost, or nothing went on and nobody was told: found by trying to break the planner."""

from datetime import timedelta

import pytest

from queen_operator.api import names
from queen_operator.planning.actions import AnnotateClaim, ApplyChildren, CloseToPushes, FreeFromBackoff, Wait
from queen_operator.planning.plan import decide
from queen_operator.planning.reasons import EventReason, Reason
from queen_operator.planning.views import LEAVING_ANNOTATION
from tests.unit.planning.removals import fewer, until
from tests.unit.planning.scene import NOW, Scene, healthy_cluster, zulu
from tests.unit.planning.test_adoption import left_by_an_earlier_cluster
from tests.unit.planning.volumes import grown
from tests.unit.planning.world import World, living
from tests.unit.planning.world_time import pass_time

REFUSAL_STANDS_ROUNDS = 20


def surplus_of_another_version() -> Scene:
    """Broker 2 is to go; what the user wrote since it was made is in the others only. Its claim was deleted by hand."""
    scene = healthy_cluster()
    scene.change_spec(replicas=2, version="1.3.1")
    for index in range(2):
        scene.roll_on(index)
    delete_claim(scene, 2)
    return scene


def delete_claim(scene: Scene, index: int) -> None:
    scene.claims[f"orders-spool-{index}"]["metadata"]["deletionTimestamp"] = zulu(NOW)


def cordon(scene: Scene, index: int) -> None:
    meta = scene.pod(index)["metadata"]
    for label in (names.PUSH_LABEL, names.SERVE_LABEL):
        del meta["labels"][label]
    meta["annotations"] = {**meta["annotations"], LEAVING_ANNOTATION: (NOW - timedelta(seconds=9)).isoformat()}


def test_a_broker_whose_claim_goes_with_its_pod_is_not_restarted_to_drain_while_it_runs() -> None:
    scene = surplus_of_another_version()
    cordon(scene, 2)
    scene.not_ready(2)
    scene.spool(2, files=3, bytes=300)

    assert isinstance(scene.action(), Wait)
    assert "its claim was deleted and goes with its pod" in scene.make_status()["message"]


def test_a_broker_whose_claim_goes_with_its_pod_is_not_restarted_to_drain_when_it_is_down() -> None:
    scene = surplus_of_another_version()
    scene.crash(2)
    scene.spool(2, files=3, bytes=300)

    assert isinstance(scene.action(), Wait)
    assert scene.make_status()["phase"] == "Blocked"


def test_a_broker_that_does_not_run_is_not_taken_away_with_an_unknown_volume_whose_claim_was_deleted() -> None:
    scene = healthy_cluster()
    scene.change_spec(replicas=2)
    scene.crash(2)
    scene.forget_spool(2)
    delete_claim(scene, 2)

    action = scene.action()
    assert isinstance(action, Wait)
    assert (action.reason, action.stalled) == (Reason.CLAIM_DELETED, True)


def test_an_empty_broker_whose_claim_was_deleted_is_taken_away_all_the_same() -> None:
    scene = healthy_cluster()
    scene.change_spec(replicas=2)
    scene.crash(2)
    delete_claim(scene, 2)

    assert isinstance(scene.action(), AnnotateClaim), "the mark comes before the end of its Deployment"


@pytest.mark.parametrize(("files", "quarantined", "freed"), [(3, 0, False), (0, 1, False), (0, 0, True)])
def test_a_pod_that_keeps_a_deleted_claim_is_not_freed_from_backoff(files: int, quarantined: int, freed: bool) -> None:
    scene = healthy_cluster()
    scene.crash(0, last="FATAL: schema apply failed: db error")
    last = scene.pod(0)["status"]["containerStatuses"][0]["lastState"]["terminated"]
    last["finishedAt"] = zulu(NOW - timedelta(minutes=4))
    scene.status["database"] = {"state": "Reachable", "since": zulu(NOW - timedelta(minutes=1))}
    scene.spool(0, files=files, quarantined_files=quarantined)
    delete_claim(scene, 0)

    assert isinstance(scene.action(), FreeFromBackoff) is freed


def test_quarantined_files_on_a_deleted_claim_keep_a_broken_broker_from_its_cure() -> None:
    scene = healthy_cluster()
    scene.change_spec(version="1.3.1")
    scene.crash(0)
    scene.spool(0, quarantined_files=1)
    delete_claim(scene, 0)

    action = scene.action()
    assert isinstance(action, Wait)
    assert action.reason is Reason.CLAIM_DELETED


def live_where_no_claim_can_grow(world: World, rounds: int) -> None:
    """Each growth is refused, which stands for a while as the worker remembers it."""
    until_round: dict[str, int] = {}
    for number in range(rounds):
        standing = {("PersistentVolumeClaim", name): "no" for name, last in until_round.items() if last > number}
        world.scene.more = {**world.scene.more, "refused": standing}
        action = decide(world.scene.observed(), world.scene.wanted)
        if isinstance(action, ApplyChildren) and action.event is EventReason.VOLUME_GROWN:
            for item in action.manifests:
                until_round[item["metadata"]["name"]] = number + REFUSAL_STANDS_ROUNDS
            pass_time(world, timedelta(seconds=1))
        else:
            world.step()


def test_a_growth_that_is_refused_keeps_no_broker_from_the_claim_of_an_earlier_cluster() -> None:
    world = left_by_an_earlier_cluster(files=2, quarantined=0)
    for claim in world.scene.claims.values():
        claim["status"] = {"phase": "Bound"}
    world.scene.change_spec(spool={"size": "50Gi"})
    live_where_no_claim_can_grow(world, 80)

    assert world.indexes() == {0, 1, 2}
    assert [world.volume(index).files for index in range(3)] == [0, 0, 0]


def test_a_claim_grows_once_its_broker_has_it() -> None:
    world = living()
    world.scene.change_spec(spool={"size": "50Gi"})
    world.scene.claims["orders-spool-1"]["metadata"]["annotations"][names.REMOVING_ANNOTATION] = "x"
    assert sorted(grown(world.scene)) == ["orders-spool-0", "orders-spool-2"]
    world.step()
    until(world, lambda w: w.scene.claims["orders-spool-1"]["spec"]["resources"]["requests"]["storage"] == "50Gi")


def test_a_member_that_needs_a_person_is_called_so_while_a_removal_waits_for_it() -> None:
    scene = healthy_cluster()
    scene.change_spec(replicas=2)
    scene.crash(0)

    assert scene.make_status()["phase"] == "Blocked"
    assert scene.condition("Stalled") is not None


def test_a_clock_that_went_back_holds_no_removal_up() -> None:
    world = fewer()
    until(world, lambda w: bool(w.did(CloseToPushes)))
    world.scene.now -= timedelta(hours=1)
    world.lose_memory()
    until(world, lambda w: "orders-2" not in w.scene.deployments, most=30)


def test_a_clock_that_went_back_holds_no_restart_up() -> None:
    world = living()
    world.scene.change_spec(version="1.3.1")
    until(world, lambda w: bool(w.did(CloseToPushes)))
    world.scene.now -= timedelta(minutes=30)
    until(world, lambda w: bool(w.stopped), most=30)


def test_a_report_pod_that_somebody_deletes_is_not_called_one_for_another_claim() -> None:
    world = fewer()
    until(world, lambda w: any(names.PROOF_LABEL in pod["metadata"]["labels"] for pod in w.scene.pods))
    report = next(pod for pod in world.scene.pods if names.PROOF_LABEL in pod["metadata"]["labels"])
    report["metadata"]["deletionTimestamp"] = zulu(world.scene.now)

    message = world.scene.make_status()["message"]
    assert "ends" in message
    assert "another claim" not in message


def test_a_volume_that_does_not_tell_its_size_is_not_called_full() -> None:
    scene = healthy_cluster()
    scene.spool(0, files=2, bytes=200, free_bytes=0, total_bytes=0)

    assert "full" not in scene.make_status()["message"]


def test_a_paused_cluster_that_is_deleted_says_that_its_deletion_waits() -> None:
    scene = healthy_cluster(spool={"onDelete": "DeleteWhenEmpty"})
    scene.finalizers, scene.deleting = [names.DRAIN_FINALIZER], True
    scene.change_spec(paused=True)

    paused = scene.condition("Paused")
    assert paused is not None
    assert "deleted" in paused["message"]
