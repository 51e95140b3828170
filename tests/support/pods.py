"""Hand-written pods and claims that a namespace with the strictest pod security admits."""

from __future__ import annotations

from typing import Any

from lab import images

RESTRICTED_POD = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "fsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
RESTRICTED_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def claim(name: str, mode: str, size: str = "1Gi", **annotations: str) -> dict[str, Any]:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": size}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def pod_spec(container: dict[str, Any], claims: list[str]) -> dict[str, Any]:
    """A pod that the restricted level admits, with each claim mounted at /CLAIM."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in claims]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    defaults = {"imagePullPolicy": "Never", "securityContext": RESTRICTED_CONTAINER, "volumeMounts": mounts}
    return {
        "terminationGracePeriodSeconds": 5,
        "securityContext": RESTRICTED_POD,
        "volumes": volumes,
        "containers": [{**defaults, **container}],
    }


def pausing_pod(name: str, claims: list[str]) -> dict[str, Any]:
    container = {"name": "pause", "image": images.PAUSE.name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(container, claims)}
