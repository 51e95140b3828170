from __future__ import annotations

from typing import Any

import pytest

from lab import volumes


def waiting_claim(**metadata: Any) -> dict[str, Any]:
    """A claim of the default class whose pod has been given a node."""
    annotations = {"volume.kubernetes.io/selected-node": "node"}
    return {
        "metadata": {"namespace": "shop", "name": "spool-0", "uid": "u1", "annotations": annotations, **metadata},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "lab-local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def storage_class(name: str) -> dict[str, Any]:
    return next(found for found in volumes.storage_classes() if found["metadata"]["name"] == name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1024", 1024), ("1k", 1000), ("512Mi", 2**29), ("1.5Gi", 3 * 2**29), ("2G", 2 * 10**9), ("1Ti", 2**40)],
)
def test_sizes_are_read_as_kubernetes_means_them(text: str, expected: int) -> None:
    assert volumes.quantity_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "banana", "1gi", "-1Gi", "1 Gi"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a storage size"):
        volumes.quantity_bytes(text)


def test_exactly_one_class_is_the_default_and_all_grow() -> None:
    classes = volumes.storage_classes()

    defaults = [c["metadata"]["name"] for c in classes if c["metadata"]["annotations"]]
    assert defaults == ["lab-local"]
    assert all(c["allowVolumeExpansion"] for c in classes)


def test_a_claim_waits_for_its_pod_unless_the_class_is_immediate() -> None:
    without_pod = waiting_claim(annotations={})

    assert volumes.waits_for_volume(waiting_claim(), storage_class("lab-local"))
    assert not volumes.waits_for_volume(without_pod, storage_class("lab-local"))
    assert volumes.waits_for_volume(without_pod, storage_class("lab-immediate"))


def test_a_bound_or_deleted_claim_gets_no_volume() -> None:
    bound, deleted = waiting_claim(), waiting_claim(deletionTimestamp="2026-12-01T00:00:00Z")
    bound["spec"]["volumeName"] = "pvc-u1"

    assert not volumes.waits_for_volume(bound, storage_class("lab-local"))
    assert not volumes.waits_for_volume(deleted, storage_class("lab-local"))


def test_a_volume_is_bound_to_its_claim_alone_and_carries_the_policy_of_its_class() -> None:
    volume = volumes.volume_for(waiting_claim(), storage_class("lab-retain"), "/volumes/pvc-u1")

    assert volume["metadata"]["name"] == "pvc-u1"
    assert volume["spec"]["claimRef"]["uid"] == "u1"
    assert volume["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volumes.is_ours(volume)


def test_shared_writing_and_raw_devices_are_refused_in_words() -> None:
    shared, raw = waiting_claim(), waiting_claim()
    shared["spec"]["accessModes"] = ["ReadWriteMany"]
    raw["spec"]["volumeMode"] = "Block"

    assert volumes.why_refused(waiting_claim(), storage_class("lab-local")) is None
    assert "ReadWriteMany is not supported" in str(volumes.why_refused(shared, storage_class("lab-local")))
    assert volumes.why_refused(raw, storage_class("lab-local")) == "only volumeMode Filesystem is supported"


def test_a_class_can_play_storage_that_does_not_know_the_single_pod_mode() -> None:
    old_storage = {**storage_class("lab-local"), "parameters": {volumes.ACCESS_MODES: "ReadWriteOnce"}}

    assert "ReadWriteOncePod is not supported" in str(volumes.why_refused(waiting_claim(), old_storage))


def test_only_a_released_volume_with_policy_delete_is_wiped() -> None:
    volume = volumes.volume_for(waiting_claim(), storage_class("lab-local"), "/volumes/pvc-u1")
    retained = volumes.volume_for(waiting_claim(), storage_class("lab-retain"), "/volumes/pvc-u1")
    for phase, wiped in (("Available", False), ("Bound", False), ("Released", True), ("Failed", False)):
        assert volumes.may_be_wiped({**volume, "status": {"phase": phase}}) is wiped
    assert not volumes.may_be_wiped({**retained, "status": {"phase": "Released"}})


@pytest.mark.parametrize(
    ("wanted", "volume_has", "claim_says", "growth"),
    [
        ("1Gi", "1Gi", "1Gi", None),
        ("1024Mi", "1Gi", "1Gi", None),
        ("2Gi", "1Gi", "1Gi", "2Gi"),
        ("2Gi", "2Gi", "1Gi", "2Gi"),  # the provisioner died between its two writes
        ("2Gi", "2Gi", "2Gi", None),
    ],
)
def test_growth_is_done_until_volume_and_claim_agree(
    wanted: str, volume_has: str, claim_says: str, growth: str | None
) -> None:
    claim = waiting_claim()
    volume = volumes.volume_for(claim, storage_class("lab-local"), "/volumes/pvc-u1")
    volume["spec"]["capacity"]["storage"] = volume_has
    claim["spec"]["resources"]["requests"]["storage"] = wanted
    claim["status"] = {"phase": "Bound", "capacity": {"storage": claim_says}}

    assert volumes.wanted_growth(claim, volume) == growth
