"""Volumes that their storage keeps from growing: refused by the class, or waiting for a new pod."""

from datetime import timedelta

from queen_operator.manifests.config import RestartCause
from queen_operator.planning.actions import CloseToPushes, ReplacePod, Rest, Wait
from queen_operator.planning.reasons import Reason
from queen_operator.planning.status import zulu
from tests.unit.planning.scene import NOW, Scene, healthy_cluster
from tests.unit.planning.volumes import apply, closed, grown, wants_more


def refused(scene: Scene) -> None:
    words = "only dynamically provisioned pvc can be resized"
    scene.more = {"refused": {("PersistentVolumeClaim", "orders-spool-1"): words}}


def test_a_class_that_cannot_expand_is_named_and_a_rollout_goes_on() -> None:
    scene = wants_more()
    apply(scene)
    scene.claims["orders-spool-1"]["spec"]["resources"]["requests"]["storage"] = "5Gi"
    scene.change_spec(broker={"logLevel": "debug"})
    refused(scene)

    assert isinstance(scene.action(), CloseToPushes)
    ready, stalled = scene.condition("Ready"), scene.condition("Stalled")
    assert ready is not None
    assert stalled is not None
    assert ready["reason"] == stalled["reason"] == Reason.CLAIM_REFUSED
    assert "PersistentVolumeClaim orders-spool-1: only dynamically provisioned" in ready["message"]


def test_what_was_refused_is_told_while_it_is_tried_again() -> None:
    scene = wants_more()
    refused(scene)
    scene.more = {"refused_before": scene.more["refused"]}

    assert "orders-spool-1" in grown(scene)
    stalled = scene.condition("Stalled")
    assert stalled is not None
    assert stalled["reason"] == Reason.CLAIM_REFUSED


def resize_pending(scene: Scene, *, seconds: int) -> None:
    since = zulu(NOW - timedelta(seconds=seconds))
    pending = {"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": since}
    scene.claims["orders-spool-1"]["status"]["conditions"] = [pending]


def test_a_file_system_that_does_not_grow_under_its_pod_gets_a_new_one_once() -> None:
    scene = healthy_cluster()
    resize_pending(scene, seconds=100)
    assert scene.action() == Rest()
    resize_pending(scene, seconds=130)
    closed(scene, 1)

    action = scene.action()

    assert isinstance(action, ReplacePod)
    assert action.causes == (RestartCause.VOLUME_RESIZE,)
    scene.roll_on(1)
    scene.pod(1)["metadata"]["creationTimestamp"] = zulu(NOW - timedelta(seconds=60))
    assert scene.action() == Rest()


def test_a_restart_for_a_volume_waits_behind_the_ordinary_guards() -> None:
    scene = healthy_cluster()
    resize_pending(scene, seconds=130)
    scene.spool(2, files=1, bytes=10)

    action = scene.action()

    assert isinstance(action, Wait)
    assert action.reason is Reason.SPOOL_NOT_EMPTY
