"""What tests of volumes ask of a round, and how they carry it out."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

from queen_operator.api import names
from queen_operator.planning.actions import ApplyChildren
from queen_operator.planning.reasons import EventReason
from queen_operator.planning.views import LEAVING_ANNOTATION
from tests.unit.planning.scene import NOW, Scene, healthy_cluster

GI = 2**30


def grown(scene: Scene) -> dict[str, str]:
    """Size by claim of a round that grows volumes; nothing when it does not."""
    action = scene.action()
    if not isinstance(action, ApplyChildren) or action.event is not EventReason.VOLUME_GROWN:
        return {}
    return {m["metadata"]["name"]: m["spec"]["resources"]["requests"]["storage"] for m in action.manifests}


def closed(scene: Scene, index: int) -> None:
    meta = scene.pod(index)["metadata"]
    meta["labels"].pop(names.PUSH_LABEL)
    meta["annotations"] = {**meta["annotations"], LEAVING_ANNOTATION: (NOW - timedelta(seconds=3)).isoformat()}


def apply(scene: Scene) -> None:
    """Carry out the growth that this round decides on; the storage follows at once."""
    action = scene.action()
    assert isinstance(action, ApplyChildren)
    for manifest in action.manifests:
        claim = scene.claims[manifest["metadata"]["name"]]
        claim["metadata"]["annotations"] = dict(manifest["metadata"]["annotations"])
        claim["spec"]["resources"] = deepcopy(dict(manifest["spec"]["resources"]))
        claim["status"] |= {"capacity": dict(claim["spec"]["resources"]["requests"])}


def wants_more(**spec: Any) -> Scene:
    """The user wants 10Gi for each broker and has 5Gi."""
    scene = healthy_cluster(**spec)
    scene.change_spec(spool={"size": "10Gi"})
    return scene
