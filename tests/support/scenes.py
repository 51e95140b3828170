"""A cluster with operators of its own that a clock runs for, while other tests run."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from lab.control_plane import ControlPlane
from tests.support import audit
from tests.support.forwarders import Forwarder
from tests.support.namespaces import fresh_name, namespace_object
from tests.support.objects import Objects
from tests.support.operators import Account, OperatorProcess, install_account


@dataclass(frozen=True)
class Scene:
    """What a waiting test looks at later; the clock runs from when the scene was made.

    ``since`` is monotonic, ``since_utc`` the same moment as the API server writes it, in whole seconds since 1970.
    """

    plane: ControlPlane
    objects: Objects
    operators: list[OperatorProcess]
    audit_position: int
    since: float = field(default_factory=time.monotonic)
    since_utc: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def begin(cls, plane: ControlPlane, objects: Objects, *operators: OperatorProcess) -> Scene:
        """Let the clock of this cluster run."""
        return cls(plane, objects, list(operators), audit.position(plane.audit_log))

    @property
    def user(self) -> str:
        """The operators' name in the audit log."""
        return self.operators[0].account.user

    def seconds_left(self, limit: float) -> float:
        """How much of this many seconds is left."""
        return max(0.0, self.since + limit - time.monotonic())


def namespace_with_account(plane: ControlPlane, name: str) -> tuple[Objects, Account]:
    """A fresh namespace, and the account of an operator for it alone."""
    objects = Objects(plane.kubeconfig, fresh_name(name))
    objects.make(namespace_object(objects.namespace))
    return objects, install_account(plane, f"{objects.namespace}-ops", [objects.namespace])


def forwarder_to(kubeconfig: Path) -> Forwarder:
    """A forwarder to the API server of a kubeconfig."""
    server: str = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    return Forwarder("127.0.0.1", int(server.rpartition(":")[2]))


def through(forwarder: Forwarder, kubeconfig: Path, folder: Path) -> Path:
    """The kubeconfig, with the forwarder in the place of the API server."""
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{forwarder.port}"
    path = folder / "through-forwarder.kubeconfig"
    path.write_text(json.dumps(config))
    return path
