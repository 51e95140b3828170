"""Claims from before: looked at and told with numbers, then taken up; those of another database never."""

from collections.abc import Mapping
from datetime import timedelta

from queen_operator.api import names
from queen_operator.planning.actions import AnnotateClaim, ApplyChildren, MakeReportPods
from queen_operator.planning.reasons import EventReason
from queen_operator.planning.reports import Held, held_of_claim
from tests.unit.planning.world import World, living

EARLIER = "22222222-2222-2222-2222-222222222222"


def left_by_an_earlier_cluster(files: int = 5, quarantined: int = 1, **spec: object) -> World:
    """Nothing but claims is there, of a cluster that had the same name."""
    world = living(**spec)
    world.scene.deployments, world.scene.pods = {}, []
    world.lose_memory()
    for index in range(3):
        volume = world.volume(index)
        volume.files, volume.quarantined = files, quarantined
        mark(world, index, {names.CLUSTER_UID_ANNOTATION: EARLIER})
    return world


def mark(world: World, index: int, marks: Mapping[str, str]) -> None:
    world.scene.claims[f"orders-spool-{index}"]["metadata"]["annotations"] |= marks


def made_brokers(world: World) -> list[str]:
    applied = world.did(ApplyChildren)
    return [item["metadata"]["name"] for act in applied for item in act.manifests if item["kind"] == "Deployment"]


def test_an_adopted_claim_is_looked_at_first_and_told_with_numbers() -> None:
    world = left_by_an_earlier_cluster()
    world.run()

    told = [action.message for action in world.did(AnnotateClaim, event=EventReason.CLAIM_ADOPTED)]
    assert told == [
        f"The claim orders-spool-{index} was there before this cluster and holds"
        f" 5 files with 50 messages (500 bytes) and 1 quarantined files; orders-{index} takes it up."
        for index in range(3)
    ]
    assert len(world.did(MakeReportPods)[0].manifests) == 3, "all are looked at at once"
    for index in range(3):
        looked = world.done.index(world.did(AnnotateClaim, name=f"orders-spool-{index}")[0])
        assert all(f"orders-{index}" not in made_brokers_before(world, position) for position in range(looked))
        assert held_of_claim(world.scene.claims[f"orders-spool-{index}"]) == Held(5, 500, 50, 1)
        assert world.volume(index).drained == 5
    assert not any(names.PROOF_LABEL in pod["metadata"]["labels"] for pod in world.scene.pods)


def made_brokers_before(world: World, position: int) -> list[str]:
    action = world.done[position]
    return [m["metadata"]["name"] for m in action.manifests] if isinstance(action, ApplyChildren) else []


def test_the_status_says_that_a_claim_is_looked_at() -> None:
    world = left_by_an_earlier_cluster()
    world.reports_start = False
    world.step()
    world.step()

    ready = world.scene.condition("Ready")
    assert ready is not None
    assert ready["reason"] == "ClaimLookedAt"
    assert "orders-spool-0 was there before this cluster, and orders-proof-0 looks at what it holds" in ready["message"]
    assert world.scene.condition("Stalled") is None


def test_nothing_of_an_adopted_claim_is_ever_deleted() -> None:
    world = left_by_an_earlier_cluster(files=0, quarantined=0)
    before = {name: claim["metadata"]["uid"] for name, claim in world.scene.claims.items()}
    world.run()

    assert {name: claim["metadata"]["uid"] for name, claim in world.scene.claims.items()} == before


def test_a_look_that_cannot_run_is_given_up_after_sixty_seconds() -> None:
    world = left_by_an_earlier_cluster()
    world.reports_start = False
    began = world.scene.now
    world.run(most=300)

    told = [action.message for action in world.did(AnnotateClaim, event=EventReason.CLAIM_ADOPTED)]
    assert len(told) == 3
    assert "holds nobody knows what (no node takes it: 0/1 nodes are available)" in told[0]
    seconds = world.done.index(world.did(AnnotateClaim)[0]) * world.seconds
    assert 60 <= seconds <= 70
    assert world.scene.now - began > timedelta(seconds=60)
    assert world.scene.make_status()["ready"] == "3/3"


def test_a_look_that_the_server_refuses_keeps_no_broker_from_its_messages() -> None:
    world = left_by_an_earlier_cluster(quarantined=0)
    refused = {("Pod", f"orders-proof-{index}"): "exceeded quota" for index in range(3)}
    world.scene.more = {"refused": refused}
    for _ in range(4):
        world.step()
    world.scene.more.pop("refused")
    world.run()

    told = world.did(AnnotateClaim, event=EventReason.CLAIM_ADOPTED)
    assert "nobody knows what (no pod may look: exceeded quota)" in told[0].message
    assert [world.volume(index).drained for index in range(3)] == [5, 5, 5]


def test_a_claim_of_another_database_is_neither_looked_at_nor_taken_up() -> None:
    world = left_by_an_earlier_cluster()
    mark(world, 1, {names.DATABASE_ANNOTATION: "old:5432/queen"})
    world.run()

    assert set(world.scene.deployments) == {"orders-0", "orders-2"}
    assert world.volume(1).files == 5
    status = world.scene.make_status()
    assert status["phase"] == "Blocked"
    assert "another database (old:5432/queen)" in status["message"]

    del world.scene.claims["orders-spool-1"]["metadata"]["annotations"][names.DATABASE_ANNOTATION]
    world.run()
    assert world.volume(1).drained == 5


def test_a_claim_that_never_had_a_volume_is_taken_up_without_a_look() -> None:
    world = left_by_an_earlier_cluster()
    claim = world.scene.claims["orders-spool-1"]
    del claim["spec"]["volumeName"]
    claim["status"] = {"phase": "Pending"}
    world.volumes.pop(claim["metadata"]["uid"])
    world.run()

    looked = [pod["metadata"]["name"] for action in world.did(MakeReportPods) for pod in action.manifests]
    assert looked == ["orders-proof-0", "orders-proof-2"]
    assert world.scene.make_status()["ready"] == "3/3"


def test_a_look_for_an_earlier_claim_of_the_same_name_is_not_believed() -> None:
    world = left_by_an_earlier_cluster(quarantined=0)
    world.step()
    for pod in world.scene.pods:
        pod["metadata"]["annotations"][names.CLAIM_UID_ANNOTATION] = "a claim of before"
    world.run()

    assert len(world.did(MakeReportPods)) > 1
    assert "5 files" in world.did(AnnotateClaim, name="orders-spool-0")[0].message


def test_a_running_broker_is_not_held_by_a_claim_that_does_not_name_its_cluster() -> None:
    world = living()
    for index in range(3):
        mark(world, index, {names.CLUSTER_UID_ANNOTATION: EARLIER})
    world.run()

    assert world.did(MakeReportPods) == []
    assert world.stopped == []
