"""Volumes: they grow at any time, but never behind a half-written record."""

from copy import deepcopy
from datetime import timedelta

import pytest

from queen_operator.api import names
from queen_operator.manifests.config import RestartCause
from queen_operator.planning.actions import ApplyChildren, CloseToPushes, ReplacePod, Rest, RestartBroker, Wait
from queen_operator.planning.observed import DatabaseState, Replay
from queen_operator.planning.reasons import Reason
from queen_operator.planning.status import zulu
from tests.unit.planning.scene import NOW, Scene, healthy_cluster
from tests.unit.planning.volumes import GI, apply, closed, grown, wants_more


def was_full(scene: Scene, index: int = 1, *, failed: int = 7) -> None:
    """Writes of this broker failed; its spool has drained since."""
    scene.page(index, failed_writes=failed)


def is_full(scene: Scene, index: int = 1, *, failed: int = 7) -> None:
    """Writes of this broker fail, and its spool holds what went in before."""
    was_full(scene, index, failed=failed)
    scene.spool(index, files=40, bytes=5 * GI - 4096, free_bytes=4096, total_bytes=5 * GI)


BROKEN = {
    "a broker cannot be scheduled and the cluster is stalled": lambda scene: scene.crash(1, reason="ImagePullBackOff"),
    "PostgreSQL is away": lambda scene: scene.database_is(DatabaseState.REFUSED),
    "no broker is Ready": lambda scene: [scene.not_ready(index) for index in range(3)],
    "another broker holds a spool": lambda scene: scene.spool(1, files=9, bytes=900),
    "a keeper is unknown": lambda scene: scene.forget_spool(1),
    "maintenance mode is on": lambda scene: scene.page(1, maintenance=True),
    "nobody can ask the broker": lambda scene: (scene.forget_spool(0), scene.page(0, alive=False, failed_writes=None)),
    "a rollout waits": lambda scene: (scene.change_spec(broker={"logLevel": "debug"}), scene.not_ready(2)),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_larger_size_reaches_every_claim_however_broken_the_cluster_is(broken: str) -> None:
    scene = wants_more()
    BROKEN[broken](scene)

    assert grown(scene) == {f"orders-spool-{index}": "10Gi" for index in range(3)}


def test_a_growth_is_told_with_both_sizes_and_changes_the_claim_that_was_seen() -> None:
    scene = wants_more()
    scene.claims["orders-spool-1"]["metadata"]["resourceVersion"] = "17"

    action = scene.action()

    assert isinstance(action, ApplyChildren)
    assert "orders-1: its claim grows from 5Gi to 10Gi, the size in the spec." in action.message
    seen = action.manifests[1]["metadata"]
    assert (seen["uid"], seen["resourceVersion"]) == ("PersistentVolumeClaim-orders-spool-1", "17")


def test_a_claim_that_is_unbound_or_going_or_was_refused_does_not_grow() -> None:
    scene = wants_more()
    scene.claims["orders-spool-0"]["status"] = {"phase": "Pending"}
    scene.claims["orders-spool-1"]["metadata"]["deletionTimestamp"] = zulu(NOW)
    scene.more = {"refused": {("PersistentVolumeClaim", "orders-spool-2"): "no"}}

    assert grown(scene) == {}


def test_a_volume_never_shrinks_to_the_size_in_the_spec() -> None:
    scene = healthy_cluster()
    scene.claims["orders-spool-1"]["spec"]["resources"]["requests"]["storage"] = "20Gi"

    assert scene.action() == Rest()


def test_a_volume_that_was_full_grows_only_after_its_broker_was_restarted() -> None:
    scene = wants_more()
    was_full(scene)

    assert grown(scene) == {"orders-spool-0": "10Gi", "orders-spool-2": "10Gi"}
    apply(scene)
    close = scene.action()
    assert isinstance(close, CloseToPushes)
    assert close.pod == "orders-1-abc"
    closed(scene, 1)
    replaced = scene.action()
    assert isinstance(replaced, ReplacePod)
    assert (replaced.pod, replaced.uid, replaced.index) == ("orders-1-abc", "pod-1", 1)
    assert replaced.causes == (RestartCause.VOLUME_FULL,)
    assert replaced.message == "orders-1 is restarted with a new pod: its volume was full."
    ready = scene.condition("Ready")
    assert ready is not None
    assert ready["reason"] == Reason.RESTARTING
    scene.roll_on(1)
    assert grown(scene) == {"orders-spool-1": "10Gi"}
    apply(scene)
    assert scene.action() == Rest()


def test_a_full_volume_waits_for_postgresql_and_says_so_with_numbers() -> None:
    scene = wants_more()
    is_full(scene, failed=340)
    scene.database_is(DatabaseState.REFUSED)

    assert set(grown(scene)) == {"orders-spool-0", "orders-spool-2"}
    apply(scene)
    assert isinstance(scene.action(), Wait)
    ready, status = scene.condition("Ready"), scene.make_status()
    assert ready is not None
    assert ready["reason"] == Reason.SPOOL_FULL
    words = "PostgreSQL is away: orders-1's volume is full (4 KiB of 5 GiB, 0 % is left, and 340 messages were refused"
    assert words in ready["message"]
    assert "it is restarted before space is added" in ready["message"]
    assert status["phase"] == "Degraded"
    assert scene.condition("Stalled") is None


def test_a_full_spool_drains_before_its_broker_is_restarted() -> None:
    scene = wants_more()
    apply(scene)
    scene.claims["orders-spool-1"]["spec"]["resources"]["requests"]["storage"] = "5Gi"
    is_full(scene)

    action = scene.action()

    assert isinstance(action, Wait)
    assert action.reason is Reason.SPOOL_DRAINING
    ready = scene.condition("Ready")
    assert ready is not None
    assert ready["reason"] == Reason.SPOOL_FULL
    assert "it drains its spool and is restarted" in ready["message"]


def test_a_volume_about_to_be_full_is_drained_and_not_restarted_before_it_grows() -> None:
    scene = wants_more()
    is_full(scene, failed=0)
    assert set(grown(scene)) == {"orders-spool-0", "orders-spool-2"}
    apply(scene)
    assert scene.action() == Rest()
    ready = scene.condition("Ready")
    assert ready is not None
    assert ready["reason"] == Reason.SPOOL_FULL
    assert "orders-1's volume is full (4 KiB of 5 GiB, 0 % is left); it drains its spool." in ready["message"]

    scene.spool(1, files=0, bytes=0, free_bytes=5 * GI)

    assert grown(scene) == {"orders-spool-1": "10Gi"}


def test_a_volume_that_is_full_of_something_else_grows_and_restarts_nothing() -> None:
    scene = healthy_cluster()
    was_full(scene)
    scene.spool(1, quarantined_files=40, free_bytes=0, total_bytes=5 * GI)
    assert scene.action() == Rest()

    scene.change_spec(spool={"size": "10Gi"})

    assert set(grown(scene)) == {"orders-spool-0", "orders-spool-1", "orders-spool-2"}


def test_writes_that_fail_in_a_directory_that_cannot_be_written_restart_nothing() -> None:
    scene = healthy_cluster()
    was_full(scene)
    scene.spool(1, writable=False)

    assert scene.action() == Rest()


def test_no_space_comes_before_the_broker_was_asked() -> None:
    scene = wants_more()
    del scene.pages["pod-1"]
    scene.page(2, asked_at=NOW - timedelta(seconds=8))

    assert set(grown(scene)) == {"orders-spool-0"}


def test_a_half_written_record_counts_while_the_broker_cannot_say_whether_it_is_its_own() -> None:
    scene = wants_more()
    scene.spool(0, files=2, bytes=200, broken_records=1)
    scene.spool(1, files=2, bytes=200, broken_records=1)
    scene.page(1, answering=False, failed_writes=None)

    assert set(grown(scene)) == {"orders-spool-0", "orders-spool-2"}


def test_the_process_that_was_full_may_not_get_space_while_it_ends() -> None:
    scene = wants_more()
    was_full(scene)
    old = deepcopy(scene.pod(1))
    scene.roll_on(1)
    old["metadata"] |= {"deletionTimestamp": zulu(NOW), "name": "orders-1-old"}
    old["metadata"]["labels"].pop(names.PUSH_LABEL)
    scene.pods.append(old)

    assert "orders-spool-1" not in grown(scene)


def test_a_crashed_broker_leaves_no_open_file_behind() -> None:
    scene = wants_more()
    is_full(scene)
    scene.crash(1)

    assert grown(scene)["orders-spool-1"] == "10Gi"


def test_a_crashed_broker_is_not_replaced_for_what_its_last_process_counted() -> None:
    scene = healthy_cluster()
    was_full(scene)
    scene.crash(1)

    assert scene.action() == Rest()


def test_a_restart_for_another_cause_takes_the_full_volume_along() -> None:
    scene = healthy_cluster()
    scene.change_spec(broker={"logLevel": "debug"})
    was_full(scene, 0)
    closed(scene, 0)

    action = scene.action()

    assert isinstance(action, RestartBroker)
    assert action.causes == (RestartCause.ENVIRONMENT, RestartCause.VOLUME_FULL)


def test_two_brokers_that_were_full_are_restarted_one_after_the_other() -> None:
    scene = healthy_cluster()
    was_full(scene, 0)
    was_full(scene, 2)
    closed(scene, 0)
    assert isinstance(scene.action(), ReplacePod)

    scene.roll_on(0)
    scene.not_ready(0)

    action = scene.action()
    assert isinstance(action, Wait)
    assert action.broker == 2
    assert "orders-0 is not Ready" in action.message
    pending = scene.condition("RestartPending")
    assert pending is not None
    assert pending["message"] == "orders-2 waits to be restarted: its volume was full."


def test_a_pod_that_the_server_does_not_let_go_holds_nothing_else() -> None:
    scene = healthy_cluster()
    was_full(scene, 0)
    was_full(scene, 2)
    scene.more = {"refused": {("Pod", "orders-0-abc"): "forbidden"}}

    action = scene.action()

    assert isinstance(action, CloseToPushes)
    assert action.pod == "orders-2-abc"


def test_a_full_volume_of_a_broker_in_maintenance_mode_says_what_keeps_it() -> None:
    scene = healthy_cluster()
    is_full(scene)
    scene.page(1, maintenance=True)
    scene.more = {"replays": {"pod-1": Replay(40, NOW)}}

    ready = scene.condition("Ready")

    assert ready is not None
    assert "maintenance mode keeps it from draining" in ready["message"]
