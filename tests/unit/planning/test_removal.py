"""Scale-down: a broker goes only drained, its claim only proved empty, and both come back while they are wanted."""

from queen_operator.api import names
from queen_operator.planning.actions import (
    AnnotateClaim,
    ApplyChildren,
    CloseToPushes,
    DeleteChild,
    MakeReportPods,
    Wait,
)
from queen_operator.planning.observed import DatabaseState
from queen_operator.planning.reasons import EventReason, Reason
from tests.unit.planning.removals import fewer, until
from tests.unit.planning.world import World

CLAIM, DEPLOYMENT = "PersistentVolumeClaim", "Deployment"


def waits(world: World, reason: Reason) -> Wait:
    """Step until this is what is waited for; returns the wait."""
    until(world, lambda world: bool(world.did(Wait, reason=reason)))
    return next(action for action in reversed(world.done) if isinstance(action, Wait) and action.reason is reason)


def position(world: World, what: type, **fields: object) -> int:
    return world.done.index(world.did(what, **fields)[0])


def test_fewer_replicas_end_with_fewer_brokers_claims_and_services_and_nothing_else_left() -> None:
    world = fewer(1)
    world.run()

    assert set(world.scene.deployments) == {"orders-0"}
    assert set(world.scene.claims) == {"orders-spool-0"}
    assert [pod["metadata"]["name"] for pod in world.scene.pods] == ["orders-0-abc"]
    assert {name for kind, name in world.scene.others if kind == "Service"} == {"orders", "orders-push", "orders-0"}
    assert world.scene.make_status()["phase"] == "Ready"
    assert world.stopped == [2, 1], "one after the other, the highest index first"


def test_a_broker_leaves_both_services_before_its_spool_is_judged() -> None:
    world = fewer()
    world.run()

    first, claim, gone = (
        position(world, CloseToPushes, cordon=True),
        position(world, AnnotateClaim, name="orders-spool-2"),
        position(world, DeleteChild, kind=DEPLOYMENT),
    )
    assert first < claim < gone
    assert not world.done[:first], "nothing comes before it"


def test_each_step_of_a_removal_is_told_in_the_status_and_none_of_them_calls_a_person() -> None:
    world = fewer()
    told = []
    for _ in range(12):
        world.step()
        told.append(world.scene.status["message"])
        assert not [c for c in world.scene.status["conditions"] if c["type"] == "Stalled"], told[-1]

    assert any("its spool is empty and is looked at once more" in words for words in told)
    assert any("pod orders-2-abc is ending its last requests" in words for words in told)
    assert any("orders-proof-2 proved its volume empty" in words for words in told)


def test_an_empty_answer_from_before_the_cordon_does_not_count() -> None:
    world = fewer()
    world.step()
    world.silent_keepers = {2}

    for _ in range(5):
        world.step()

    assert 2 not in world.stopped
    assert world.done[-1].reason is Reason.SPOOL_UNKNOWN  # type: ignore[union-attr]


def test_one_empty_answer_is_not_enough() -> None:
    world = fewer()
    world.seconds = 10.0  # one answer in ten seconds, the first of them after the cordon
    world.step()
    world.lose_memory()
    world.seconds = 1.0
    world.step()
    answered = next(iter(spool for uid, spool in world.scene.spools.items() if uid == "pod-2"))
    assert answered.empty

    action = world.step()

    assert isinstance(action, Wait)
    assert (action.reason, "looked at once more" in action.message) == (Reason.SPOOL_DRAINING, True)


def test_a_broker_with_messages_drains_them_first_and_the_wait_counts_them_down() -> None:
    world = fewer()
    world.volume(2).files = 9
    volume = world.volume(2)
    world.run()

    counted = [action.message for action in world.did(Wait, reason=Reason.SPOOL_DRAINING)]
    assert "it drains its spool first: 3 files, 300 bytes, 30 messages." in " ".join(counted)
    assert volume.drained == 9


def test_no_broker_is_stopped_while_postgresql_is_away_and_the_wait_says_so() -> None:
    world = fewer()
    world.scene.database_is(DatabaseState.REFUSED, "pg:5432 refuses connections")

    wait = waits(world, Reason.DATABASE_AWAY)
    for _ in range(20):
        world.step()

    assert world.stopped == []
    assert wait.message == (
        "orders-2 is to be taken away and waits: PostgreSQL is away (ConnectionRefused): pg:5432 refuses connections"
    )
    world.scene.database_is(DatabaseState.REACHABLE, "")
    world.run()
    assert world.stopped == [2]


def test_an_unknown_spool_is_never_an_empty_one() -> None:
    world = fewer()
    world.silent_keepers = {2}
    for _ in range(60):
        world.step()

    assert world.stopped == []
    world.silent_keepers = set()
    world.run()
    assert world.stopped == [2]


def test_a_quarantined_file_blocks_with_numbers_until_a_person_has_moved_it() -> None:
    world = fewer()
    world.volume(2).quarantined = 3
    world.run()

    assert world.stopped == []
    status = world.scene.make_status()
    assert status["phase"] == "Blocked"
    assert "orders-2 is to be taken away and waits: it holds 3 quarantined files" in status["message"]

    world.volume(2).quarantined, world.volume(2).files = 0, 3
    world.run()
    assert "orders-spool-2" not in world.scene.claims


def test_a_claim_goes_only_after_a_report_for_exactly_this_claim() -> None:
    world = fewer()
    until(world, lambda world: bool(world.did(MakeReportPods)))
    report = next(pod for pod in world.scene.pods if names.PROOF_LABEL in pod["metadata"]["labels"])
    report["metadata"]["annotations"][names.CLAIM_UID_ANNOTATION] = "the claim of last week"
    until(world, lambda world: bool(world.did(DeleteChild, kind=CLAIM)))

    assert len(world.did(MakeReportPods)) == 2, "the first report speaks of another claim"


def test_a_report_made_while_a_pod_ran_proves_nothing() -> None:
    world = fewer()
    until(world, lambda world: bool(world.did(MakeReportPods)))
    report = next(pod for pod in world.scene.pods if names.PROOF_LABEL in pod["metadata"]["labels"])
    early = fewer()
    early.scene.pods.append(report)
    report["metadata"]["annotations"][names.CLAIM_UID_ANNOTATION] = early.scene.claims["orders-spool-2"]["metadata"][
        "uid"
    ]
    said = '{"files": 0, "bytes": 0, "quarantined_files": 0}'
    ended = {"name": "report", "state": {"terminated": {"exitCode": 0, "message": said}}}
    report["status"] = {"phase": "Succeeded", "containerStatuses": [ended]}

    assert early.step() == DeleteChild(
        "Pod",
        "orders-proof-2",
        report["metadata"]["uid"],
        "orders-2 runs: an earlier look at its volume proves nothing.",
        None,
    )
    early.run()
    assert len(early.did(MakeReportPods)) == 1
    assert "orders-spool-2" not in early.scene.claims


def test_a_volume_that_is_not_empty_gets_its_broker_back_to_drain() -> None:
    world = fewer()
    until(world, lambda world: "orders-2" not in world.scene.deployments)
    volume = world.volume(2)
    volume.files = 4  # a push that came at the very last
    world.run()

    back = world.did(ApplyChildren, event=EventReason.DRAIN_STARTED)
    assert len(back) == 1
    assert "its volume holds 4 files with 40 messages (400 bytes)" in back[0].message
    assert volume.drained == 4
    assert "orders-spool-2" not in world.scene.claims


def test_a_report_that_found_nothing_out_keeps_the_claim_and_asks_for_a_person() -> None:
    world = fewer()
    until(world, lambda world: bool(world.did(MakeReportPods)))
    report = next(pod for pod in world.scene.pods if names.PROOF_LABEL in pod["metadata"]["labels"])
    report["status"] = {"phase": "Failed", "reason": "Evicted"}
    world.run()

    assert "orders-spool-2" in world.scene.claims
    status = world.scene.make_status()
    assert status["phase"] == "Blocked"
    assert "could not tell what the claim orders-spool-2 holds: Evicted. Unknown is not empty" in status["message"]

    world.scene.pods.remove(report)
    world.run()
    assert "orders-spool-2" not in world.scene.claims


def test_a_retained_claim_is_kept_and_listed_with_what_it_holds() -> None:
    world = fewer(spool={"onScaleDown": "Retain"})
    world.run()

    assert world.scene.make_status()["retainedClaims"] == [
        {"name": "orders-spool-2", "known": True, "files": 0, "bytes": 0, "events": 0, "quarantinedFiles": 0}
    ]
    assert len(world.did(AnnotateClaim, event=EventReason.CLAIM_RETAINED)) == 1
    assert len(world.scene.pods) == 2, "the pod that looked is put away"


def test_a_later_delete_policy_does_not_touch_a_retained_claim() -> None:
    world = fewer(spool={"onScaleDown": "Retain"})
    world.run()
    world.scene.change_spec(spool={"onScaleDown": "Delete"})
    world.run()
    world.scene.change_spec(replicas=1)
    world.run()

    assert set(world.scene.claims) == {"orders-spool-0", "orders-spool-2"}


def test_a_retained_claim_is_taken_up_when_its_broker_is_wanted_again() -> None:
    world = fewer(spool={"onScaleDown": "Retain"})
    world.run()
    uid = world.scene.claims["orders-spool-2"]["metadata"]["uid"]
    world.scene.change_spec(replicas=3)
    world.run()

    assert world.scene.claims["orders-spool-2"]["metadata"]["uid"] == uid
    assert world.scene.make_status()["ready"] == "3/3"
    assert "retainedClaims" not in world.scene.make_status()
