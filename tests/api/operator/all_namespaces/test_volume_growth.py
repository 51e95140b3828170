"""Claims grow on a real API server, whose admission asks their storage class first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.clusters import condition, make_settled, not_ready_because, rests, status
from tests.support.objects import Object, Objects
from tests.support.operators import OperatorProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("operator")

CLAIMS = ("orders-spool-0", "orders-spool-1")


def _storage_class(name: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/none",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume_for(objects: Objects, claim: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{objects.namespace}-{claim}"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": objects.namespace,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/nowhere"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": objects.namespace}
            | {"name": claim},
        },
    }


@pytest.fixture
def fixed_size(objects: Objects) -> Iterator[str]:
    """A storage class that lets no volume grow, with a volume for each of the claims, which the controllers bind."""
    objects.make(_storage_class(objects.namespace), *(_volume_for(objects, claim) for claim in CLAIMS))
    yield objects.namespace
    objects.delete("StorageClass", objects.namespace)
    for claim in CLAIMS:
        objects.delete("PersistentVolume", f"{objects.namespace}-{claim}")


def _sizes(objects: Objects) -> dict[str, str]:
    found = objects.all("PersistentVolumeClaim")
    return {name: item["spec"]["resources"]["requests"]["storage"] for name, item in found.items()}


def _all_bound(objects: Objects) -> bool:
    found = objects.all("PersistentVolumeClaim")
    return {found[name]["status"]["phase"] for name in CLAIMS} == {"Bound"}


def _events(objects: Objects, reason: str) -> list[str]:
    return [item["message"] for item in objects.all("Event").values() if item["reason"] == reason]


def _refusals(plane: ControlPlane, operator: OperatorProcess, objects: Objects) -> int:
    """How often the operator was refused the growth of the first claim."""
    asked = audit.requests_of(plane.audit_log, operator.account.user)
    place = {"namespace": objects.namespace, "name": CLAIMS[0]}.items()
    about_it = [entry for entry in asked if entry.get("objectRef", {}).items() >= place]
    return sum(entry["responseStatus"]["code"] == 403 for entry in about_it)


def test_a_class_that_lets_no_volume_grow_is_named_until_it_does_and_holds_nothing_else(
    objects: Objects, fixed_size: str, plane: ControlPlane, operator: OperatorProcess
) -> None:
    make_settled(objects, replicas=2, spool={"size": "5Gi", "storageClassName": fixed_size})
    wait_until("the claims to be bound", lambda: _all_bound(objects))

    objects.patch("QueenCluster", "orders", {"spec": {"spool": {"size": "6Gi"}}})
    wait_until(
        "the refusal in the status",
        not_ready_because(objects, "ClaimRefused", "orders-spool-0", "storageclass that provisions the pvc must"),
    )

    stalled = condition(objects, "Stalled")
    assert stalled["reason"] == "ClaimRefused"
    assert status(objects)["phase"] == "Blocked"
    assert _sizes(objects) == dict.fromkeys(CLAIMS, "5Gi")
    # The rest goes on: a child comes back, and what the new spec changes otherwise is seen.
    uid = objects.there("Service", "orders")["metadata"]["uid"]
    objects.delete("Service", "orders")
    objects.patch("QueenCluster", "orders", {"spec": {"resources": {"requests": {"cpu": "501m"}}}})
    wait_until("the Service to be back", lambda: (objects.get("Service", "orders") or {}).get("metadata", {}) != {})
    wait_until("the change to be seen", lambda: condition(objects, "RestartPending")["reason"] == "ChangesWait")
    assert objects.there("Service", "orders")["metadata"]["uid"] != uid

    # It stands still in the status, while the growth is tried again.
    wait_until("a second refusal", lambda: _refusals(plane, operator, objects) > 1, seconds=60)
    assert condition(objects, "Stalled")["lastTransitionTime"] == stalled["lastTransitionTime"]

    objects.patch("StorageClass", fixed_size, {"allowVolumeExpansion": True})
    wait_until("the claims to grow", lambda: _sizes(objects) == dict.fromkeys(CLAIMS, "6Gi"), seconds=60)
    wait_until("the refusal to be over", lambda: not condition(objects, "Stalled"))
    grown = wait_until("the event", lambda: _events(objects, "VolumeGrown"))
    assert "orders-0: its claim grows from 5Gi to 6Gi, the size in the spec." in " ".join(grown)


def test_claims_grow_while_no_pod_runs_and_postgresql_is_away_and_never_shrink(
    objects: Objects, fixed_size: str
) -> None:
    objects.patch("StorageClass", fixed_size, {"allowVolumeExpansion": True})
    make_settled(objects, replicas=2, spool={"size": "5Gi", "storageClassName": fixed_size})
    wait_until("the claims to be bound", lambda: _all_bound(objects))

    objects.patch("QueenCluster", "orders", {"spec": {"spool": {"size": "6Gi"}}})
    wait_until("the claims to grow", lambda: _sizes(objects) == dict.fromkeys(CLAIMS, "6Gi"))
    larger = {"spec": {"resources": {"requests": {"storage": "7Gi"}}}}
    objects.patch("PersistentVolumeClaim", "orders-spool-1", larger)
    objects.patch("QueenCluster", "orders", {"spec": {"rollout": {"minReadySeconds": 6}}})
    wait_until("the operator to see it and rest", lambda: rests(objects))

    assert _sizes(objects) == {"orders-spool-0": "6Gi", "orders-spool-1": "7Gi"}
