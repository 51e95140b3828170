"""What the laboratory's volumes are: storage classes, the volume for a claim, sizes; pure, nothing is touched here."""

from __future__ import annotations

import re
from fractions import Fraction

from lab.api_client import Object
from lab.kubelet import NODE_NAME

PROVISIONER = "lab.queen-operator.dev/local"
SIZED = "lab.queen-operator.dev/sized"  # annotation of a claim: "true" limits the volume to the claim's size
ACCESS_MODES = "accessModes"  # parameter of a class: the modes it takes, separated by commas

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_MODES = "ReadWriteOnce,ReadWriteOncePod"
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def storage_classes() -> list[Object]:
    """The three classes: lab-local (the default; deletes, waits for a pod), lab-retain, lab-immediate."""
    return [
        _storage_class("lab-local", "Delete", "WaitForFirstConsumer", {_DEFAULT_CLASS: "true"}),
        _storage_class("lab-retain", "Retain", "WaitForFirstConsumer", {}),
        _storage_class("lab-immediate", "Delete", "Immediate", {}),
    ]


def _storage_class(name: str, reclaim: str, binding: str, annotations: dict[str, str]) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": PROVISIONER,
        "reclaimPolicy": reclaim,
        "volumeBindingMode": binding,
        "allowVolumeExpansion": True,
    }


def quantity_bytes(text: str) -> int:
    """Bytes of a storage quantity as Kubernetes writes it ("512Mi", "1.5G", "1024"); ValueError otherwise."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)", text)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a storage size")
    return int(Fraction(match[1]) * _UNITS[match[2]])


def volume_name(claim: Object) -> str:
    """Name of the volume for a claim; a claim that was deleted and made again gets another one."""
    return f"pvc-{claim['metadata']['uid']}"


def requested(claim: Object) -> str:
    """The size a claim asks for."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


def is_sized(claim: Object) -> bool:
    """Whether the volume must be full when the claim's size is reached."""
    return bool(claim["metadata"].get("annotations", {}).get(SIZED) == "true")


def waits_for_volume(claim: Object, storage_class: Object) -> bool:
    """Whether it is time to make the volume: the claim is unbound, and a pod was placed if the class waits for one."""
    if claim["spec"].get("volumeName") or claim["metadata"].get("deletionTimestamp"):
        return False
    if storage_class.get("volumeBindingMode") == "Immediate":
        return True
    return _SELECTED_NODE in claim["metadata"].get("annotations", {})


def why_refused(claim: Object, storage_class: Object) -> str | None:
    """Why the class cannot serve the claim, in the words of the event; None when it can."""
    allowed = storage_class.get("parameters", {}).get(ACCESS_MODES, _DEFAULT_MODES).split(",")
    refused = [mode for mode in claim["spec"]["accessModes"] if mode not in allowed]
    if refused:
        return f"access mode {', '.join(refused)} is not supported; this class takes {', '.join(allowed)}"
    if claim["spec"].get("volumeMode", "Filesystem") != "Filesystem":
        return "only volumeMode Filesystem is supported"
    return None


def volume_for(claim: Object, storage_class: Object, path: str) -> Object:
    """The PersistentVolume at this path of the node, bound to the claim in advance."""
    metadata = claim["metadata"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(claim),
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "capacity": {"storage": requested(claim)},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": "Filesystem",
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }


def is_ours(volume: Object) -> bool:
    """Whether the laboratory made this volume."""
    return bool(volume["metadata"].get("annotations", {}).get("pv.kubernetes.io/provisioned-by") == PROVISIONER)


def may_be_wiped(volume: Object) -> bool:
    """Whether the volume's claim is gone and its policy says Delete."""
    phase, policy = volume.get("status", {}).get("phase"), volume["spec"].get("persistentVolumeReclaimPolicy")
    return (phase, policy) == ("Released", "Delete")


def wanted_growth(claim: Object, volume: Object) -> str | None:
    """The size a bound claim should have grown to, None when nothing is to be done.

    Also when only the last step is missing, the claim's status: a provisioner that dies half-way goes on there.
    """
    size = requested(claim)
    done = [volume["spec"]["capacity"]["storage"], claim.get("status", {}).get("capacity", {}).get("storage", size)]
    return size if any(quantity_bytes(size) > quantity_bytes(reached) for reached in done) else None
