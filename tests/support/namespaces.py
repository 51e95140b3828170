"""kubectl bound to the namespace of one test."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.kubectl import Kubectl


@dataclass(frozen=True)
class NamespacedKubectl:
    """Runs kubectl in one namespace: `kubectl("get", "pods")`. Refusals are LabErrors with kubectl's own words."""

    kubeconfig: Path
    namespace: str

    @property
    def everywhere(self) -> Kubectl:
        """The same cluster, without a namespace."""
        return Kubectl(self.kubeconfig)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        return self.everywhere.run(f"--namespace={self.namespace}", *arguments, stdin=stdin)

    def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Apply objects (server-side) into the namespace."""
        self.everywhere.apply(objects, self.namespace)

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """An object, None when it does not exist."""
        return self.everywhere.get(kind, name, self.namespace)

    def items(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, or those that a label selector matches."""
        return list(json.loads(self("get", kind, f"--selector={selector}", "--output=json"))["items"])

    def is_true(self, kind: str, name: str, condition: str) -> bool:
        """Whether a condition of an object is True; False also when there is no such object."""
        found = self.get(kind, name)
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def fresh_name(test_name: str) -> str:
    """A namespace name that tells the test and is used by no other."""
    slug = re.sub(r"[^a-z0-9]+", "-", test_name.lower().removeprefix("test_")).strip("-")[:40].strip("-")
    return f"{slug}-{secrets.token_hex(2)}"


def namespace_object(name: str) -> dict[str, Any]:
    """A namespace with the strictest pod security, as a careful platform team has them."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
