"""The laboratory's volumes: bound in both single-writer modes, owned by the pod's group, limited, grown, wiped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.node import Node
from tests.support.namespaces import NamespacedKubectl
from tests.support.pods import claim, pausing_pod
from tests.support.waiting import wait_until


def volume_of(kubectl: NamespacedKubectl, claim_name: str) -> dict[str, Any]:
    bound = kubectl.get("pvc", claim_name)
    assert bound is not None
    volume = kubectl.get("pv", bound["spec"]["volumeName"])
    assert volume is not None
    return volume


def folder_of(node: Node, volume: dict[str, Any]) -> Path:
    return node.path(Path(volume["spec"]["local"]["path"]))


def test_claims_of_both_single_writer_modes_are_bound_and_fs_group_is_honored(
    node: Node, kubectl: NamespacedKubectl
) -> None:
    kubectl.apply([claim("one", "ReadWriteOnce"), claim("pod", "ReadWriteOncePod")])
    kubectl.apply([pausing_pod("user", ["one", "pod"])])
    wait_until("the pod to be Ready", lambda: kubectl.is_true("pod", "user", "Ready"))

    folders = [folder_of(node, volume_of(kubectl, name)).stat() for name in ("one", "pod")]

    assert [folder.st_gid for folder in folders] == [65532, 65532]
    assert [oct(folder.st_mode)[-4:] for folder in folders] == ["2775", "2775"]


def test_a_second_pod_on_a_single_pod_claim_waits(kubectl: NamespacedKubectl) -> None:
    kubectl.apply([claim("spool", "ReadWriteOncePod"), pausing_pod("first", ["spool"])])
    wait_until("the first pod", lambda: kubectl.is_true("pod", "first", "Ready"))
    kubectl.apply([pausing_pod("second", ["spool"])])

    def refusal() -> str:
        conditions = (kubectl.get("pod", "second") or {}).get("status", {}).get("conditions", [])
        return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")

    assert "ReadWriteOncePod" in wait_until("the scheduler's word on the second pod", refusal)


def test_a_sized_volume_is_full_at_its_size_and_grows_on_demand(node: Node, kubectl: NamespacedKubectl) -> None:
    sized = {"lab.queen-operator.dev/sized": "true"}
    kubectl.apply([claim("small", "ReadWriteOncePod", "4Mi", **sized), pausing_pod("user", ["small"])])
    wait_until("the pod to be Ready", lambda: kubectl.is_true("pod", "user", "Ready"))
    folder = folder_of(node, volume_of(kubectl, "small"))

    with pytest.raises(OSError, match="No space left on device"):
        (folder / "too-much").write_bytes(b"x" * 5 * 2**20)
    kubectl.apply([claim("small", "ReadWriteOncePod", "8Mi", **sized)])
    wait_until(
        "the claim to grow", lambda: (kubectl.get("pvc", "small") or {})["status"]["capacity"]["storage"] == "8Mi"
    )

    (folder / "too-much").write_bytes(b"x" * 5 * 2**20)
    assert volume_of(kubectl, "small")["spec"]["capacity"]["storage"] == "8Mi"


def test_a_deleted_claim_takes_its_files_along_unless_the_class_retains(node: Node, kubectl: NamespacedKubectl) -> None:
    kept = claim("kept", "ReadWriteOnce")
    kept["spec"]["storageClassName"] = "lab-retain"
    kubectl.apply([claim("gone", "ReadWriteOnce"), kept, pausing_pod("user", ["gone", "kept"])])
    wait_until("the pod to be Ready", lambda: kubectl.is_true("pod", "user", "Ready"))
    gone_volume, kept_volume = volume_of(kubectl, "gone"), volume_of(kubectl, "kept")
    for volume in (gone_volume, kept_volume):
        (folder_of(node, volume) / "file").write_text("a message")

    kubectl("delete", "pod/user", "pvc/gone", "pvc/kept", "--grace-period=1")
    wait_until("the volume to go", lambda: kubectl.get("pv", gone_volume["metadata"]["name"]) is None)

    assert not folder_of(node, gone_volume).exists()
    assert (folder_of(node, kept_volume) / "file").read_text() == "a message"
    kubectl("delete", "pv", kept_volume["metadata"]["name"])


def test_an_immediate_class_binds_without_a_pod_and_refuses_shared_writing(kubectl: NamespacedKubectl) -> None:
    ready, refused = claim("ready", "ReadWriteOnce"), claim("refused", "ReadWriteMany")
    for wanted in (ready, refused):
        wanted["spec"]["storageClassName"] = "lab-immediate"
    kubectl.apply([ready, refused])

    def events() -> list[str]:
        found = kubectl.items("events")
        return [e["message"] for e in found if e["involvedObject"]["name"] == "refused" and e["type"] == "Warning"]

    wait_until("the claim to be bound", lambda: (kubectl.get("pvc", "ready") or {})["status"]["phase"] == "Bound")
    messages = wait_until("the refusal", events)
    assert "access mode ReadWriteMany is not supported" in messages[0]
