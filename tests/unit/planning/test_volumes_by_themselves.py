"""Volumes that grow by themselves: in time, one step at a time, and never without an end."""

from typing import Any

import pytest

from queen_operator.api import names
from queen_operator.planning.actions import ApplyChildren, Rest
from queen_operator.planning.status import zulu
from tests.unit.planning.scene import NOW, Scene, healthy_cluster
from tests.unit.planning.volumes import GI, apply, grown

AUTO = {"size": "5Gi", "autoGrow": {"below": "20%", "step": "5Gi", "max": "12Gi"}}


def auto_growing(*, free: int = GI // 2, total: int = 5 * GI) -> Scene:
    """Volumes of 5Gi that have arrived, of which that of orders-1 has little space."""
    scene = healthy_cluster(spool=AUTO)
    for claim in scene.claims.values():
        claim["status"] |= {"capacity": {"storage": "5Gi"}}
    scene.spool(1, free_bytes=free, total_bytes=total)
    return scene


def test_a_volume_grows_by_a_step_before_it_is_full_and_says_why() -> None:
    scene = auto_growing()

    action = scene.action()

    assert grown(scene) == {"orders-spool-1": "10Gi"}
    assert isinstance(action, ApplyChildren)
    assert action.message == "orders-1: its claim grows from 5Gi to 10Gi, since 512 MiB of 5 GiB, 10 % is left."
    assert action.manifests[0]["metadata"]["annotations"][names.GROWN_FROM_ANNOTATION] == str(5 * GI)


@pytest.mark.parametrize(("free", "grows"), [(GI, False), (GI - 1, True)])
def test_a_volume_grows_below_its_limit_and_not_at_it(free: int, grows: bool) -> None:
    assert bool(grown(auto_growing(free=free))) == grows


def test_a_volume_does_not_grow_again_before_its_file_system_has() -> None:
    scene = auto_growing()
    apply(scene)
    assert scene.action() == Rest()

    scene.spool(1, free_bytes=GI, total_bytes=10 * GI)

    assert grown(scene) == {"orders-spool-1": "12Gi"}


@pytest.mark.parametrize(
    "status",
    [
        {"capacity": {"storage": "4Gi"}},
        {"capacity": None},
        {"conditions": [{"type": "Resizing", "status": "True"}]},
        {"conditions": [{"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": zulu(NOW)}]},
    ],
)
def test_a_volume_does_not_grow_while_it_is_being_resized(status: dict[str, Any]) -> None:
    scene = auto_growing()
    scene.claims["orders-spool-1"]["status"] |= status

    assert scene.action() == Rest()


def test_a_volume_of_its_largest_size_stays_and_the_status_says_so() -> None:
    scene = auto_growing(total=12 * GI)
    claim = scene.claims["orders-spool-1"]
    claim["spec"]["resources"]["requests"]["storage"] = "12Gi"
    claim["status"] |= {"capacity": {"storage": "12Gi"}}

    assert scene.action() == Rest()
    ready = scene.condition("Ready")
    assert ready is not None
    assert ready["status"] == "True"
    assert "orders-1's volume has 512 MiB of 12 GiB, 4 % left" in ready["message"]
    assert "its claim has reached spool.autoGrow.max, 12Gi." in ready["message"]


def test_a_file_system_that_never_grows_is_named_and_grows_its_claim_once() -> None:
    scene = auto_growing()
    apply(scene)

    assert scene.action() == Rest()
    ready = scene.condition("Ready")
    assert ready is not None
    assert "its last growth has not reached the file system" in ready["message"]


def test_a_volume_grows_by_itself_only_on_the_word_of_its_keeper() -> None:
    scene = auto_growing()
    scene.forget_spool(1)

    assert scene.action() == Rest()


def test_little_space_is_told_without_autogrow_and_with_a_spool_too() -> None:
    scene = healthy_cluster()
    scene.spool(2, files=3, bytes=300, free_bytes=1950 * 2**20, total_bytes=10 * GI)

    ready, spools = scene.condition("Ready"), scene.condition("SpoolEmpty")

    assert ready is not None
    assert spools is not None
    for message in (ready["message"], spools["message"]):
        assert message.endswith("orders-2's volume has 1.9 GiB of 10 GiB, 19 % left.")
    assert scene.condition("Stalled") is None
