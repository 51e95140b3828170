"""Brokers that are to be restarted: what tests of rollouts arrange, and what they ask of a wait."""

from datetime import timedelta
from typing import Any

from queen_operator.api import names
from queen_operator.planning.actions import Wait
from queen_operator.planning.reasons import Reason
from queen_operator.planning.views import LEAVING_ANNOTATION
from tests.unit.planning.scene import NOW, Scene, healthy_cluster


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


def serving(scene: Scene, index: int) -> None:
    """It is in both Services again."""
    pod = scene.pod(index)
    pod["metadata"]["labels"] |= {names.SERVE_LABEL: "true", names.PUSH_LABEL: "true"}
    pod["metadata"]["annotations"].pop(LEAVING_ANNOTATION, None)


def assert_waits(scene: Scene, reason: Reason, *words: str) -> None:
    action = scene.action()

    assert isinstance(action, Wait), action
    assert action.reason is reason, action
    for word in words:
        assert word in action.message
