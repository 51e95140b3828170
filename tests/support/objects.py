"""Objects of one namespace, straight from the API server: a kubectl for each look would keep a small machine busy."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lab.api_client import MERGE_PATCH, ApiClient
from queen_operator.cluster import kinds
from queen_operator.cluster.kinds import Kind

Object = dict[str, Any]

_CORE: Final = "api/v1"
_RBAC: Final = "apis/rbac.authorization.k8s.io/v1"
_KINDS: Final[Mapping[str, Kind]] = {
    **kinds.BY_NAME,
    **{
        kind.name: kind
        for kind in (
            kinds.QUEEN_CLUSTER,
            kinds.EVENT,
            Kind("ConfigMap", _CORE, "configmaps"),
            Kind("Namespace", _CORE, "namespaces"),
            Kind("PersistentVolume", _CORE, "persistentvolumes"),
            Kind("StorageClass", "apis/storage.k8s.io/v1", "storageclasses"),
            Kind("Lease", "apis/coordination.k8s.io/v1", "leases"),
            Kind("ReplicaSet", "apis/apps/v1", "replicasets"),
            Kind("ClusterRole", _RBAC, "clusterroles"),
            Kind("ClusterRoleBinding", _RBAC, "clusterrolebindings"),
            Kind("Role", _RBAC, "roles"),
            Kind("RoleBinding", _RBAC, "rolebindings"),
        )
    },
}


@dataclass(frozen=True)
class Objects:
    """What an administrator sees and does in one namespace. Refusals are ApiErrors with the server's own words."""

    kubeconfig: Path
    namespace: str

    @functools.cached_property
    def client(self) -> ApiClient:
        """The administrator's requests."""
        return ApiClient.from_kubeconfig(self.kubeconfig)

    def get(self, kind: str, name: str) -> Object | None:
        """One object, None when it does not exist."""
        return self.client.get(self._path(kind, name))

    def there(self, kind: str, name: str) -> Object:
        """One object that the test knows to exist."""
        found = self.get(kind, name)
        assert found is not None, f"there is no {kind} {name} in {self.namespace}"
        return found

    def elsewhere(self, namespace: str) -> Objects:
        """The same cluster, another namespace."""
        return Objects(self.kubeconfig, namespace)

    def all(self, kind: str) -> dict[str, Object]:
        """Every object of a kind, by name."""
        listed = self.client.get(self._path(kind))
        assert listed is not None
        return {item["metadata"]["name"]: item for item in listed["items"]}

    def make(self, *objects: Object) -> None:
        """Create objects; the namespace is added."""
        for item in objects:
            self.client.send("POST", self._path(item["kind"]), item)

    def patch(self, kind: str, name: str, changes: Object, *, subresource: str = "") -> Object:
        """Change an object by merge patch, as another field manager than the operator."""
        path = self._path(kind, name) + (f"/{subresource}" if subresource else "")
        return self.client.send("PATCH", path, changes, MERGE_PATCH)

    def replace(self, item: Object) -> Object:
        """Write a whole object over the stored one."""
        return self.client.send("PUT", self._path(item["kind"], item["metadata"]["name"]), item)

    def delete(self, kind: str, name: str, propagation: str = "Background") -> None:
        """Delete an object."""
        self.client.send("DELETE", self._path(kind, name), {"propagationPolicy": propagation})

    def _path(self, kind: str, name: str | None = None) -> str:
        found = _KINDS[kind]
        cluster_scoped = kind.startswith("Cluster") or kind in ("Namespace", "PersistentVolume", "StorageClass")
        return found.path(None if cluster_scoped else self.namespace, name)
