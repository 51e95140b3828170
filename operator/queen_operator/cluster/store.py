"""All caches of the process: the operator's own children by label, and the Secrets that clusters refer to."""

import asyncio
import time
from collections.abc import Callable, Iterable

from queen_operator.api import names
from queen_operator.cluster.cache import Cache, Key, group_of, key_of
from queen_operator.cluster.client import Api, Object
from queen_operator.cluster.kinds import CHILDREN, SECRET, Kind

Wake = Callable[[str, str], None]  # namespace, cluster

# Servers may filter slowly or a stream may have just been renewed; beyond this a blind operator says so.
SILENT_AFTER_SECONDS = 240.0


class Store:
    """What the API server last said about everything that the operator's clusters consist of."""

    def __init__(self, api: Api, namespaces: Iterable[str], wake: Wake) -> None:
        self.api = api
        self._wake = wake
        self._interest: dict[Key, set[str]] = {}
        self._stale: set[tuple[str, str, str]] = set()  # namespace, Secret, cluster
        scopes: list[str | None] = sorted(namespaces) or [None]  # type: ignore[assignment]
        selector = f"{names.MANAGED_BY_LABEL}={names.FIELD_MANAGER}"
        self.caches: dict[tuple[str, str | None], Cache] = {}
        for scope in scopes:
            for kind in CHILDREN:
                self.caches[kind.name, scope] = Cache(
                    api, kind, namespace=scope, selector=selector, on_change=self._child_changed
                )
            self.caches[SECRET.name, scope] = Cache(
                api,
                SECRET,
                namespace=scope,
                metadata_only=True,  # contents of foreign Secrets never enter this process
                keep=self._secret_of_interest,
                on_change=self._secret_changed,
            )

    async def run(self) -> None:
        """Feed every cache until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in self.caches.values():
                group.create_task(cache.run())

    async def wait_synced(self) -> None:
        """Return once every cache has been filled: before that, what is absent is only unknown."""
        for cache in self.caches.values():
            await cache.synced.wait()

    def unsynced(self) -> list[str]:
        """Kinds that could not be listed yet."""
        return sorted({kind for (kind, _), cache in self.caches.items() if not cache.synced.is_set()})

    def silent(self) -> list[str]:
        """Kinds whose watch has said nothing, not even a bookmark, for longer than a healthy one is silent."""
        now = time.monotonic()
        quiet = {k for (k, _), cache in self.caches.items() if now - cache.heard_at > SILENT_AFTER_SECONDS}
        return sorted(quiet)

    def of_cluster(self, kind: Kind, namespace: str, cluster: str) -> dict[str, Object]:
        """Our objects of one kind that belong to one cluster, by name."""
        return self._cache(kind, namespace).of_cluster(namespace, cluster)

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """One cached object."""
        return self._cache(kind, namespace).items.get((namespace, name))

    def put(self, kind: Kind, item: Object) -> None:
        """Take the answer to our own write, so that the next round sees it."""
        self._cache(kind, item["metadata"]["namespace"]).put(item)

    def drop(self, kind: Kind, namespace: str, name: str) -> None:
        """Forget an object that the server says is gone."""
        self._cache(kind, namespace).drop(namespace, name)

    def refer(self, namespace: str, cluster: str, secrets: Iterable[str]) -> None:
        """Say which Secrets a cluster refers to; changes of others are not noticed."""
        wanted = set(secrets)
        for key, clusters in list(self._interest.items()):
            if key[0] == namespace and cluster in clusters and key[1] not in wanted:
                clusters.discard(cluster)
                if not clusters:
                    del self._interest[key]
        for name in wanted:
            self._interest.setdefault((namespace, name), set()).add(cluster)

    def take_stale(self, namespace: str, cluster: str) -> set[str]:
        """Names of Secrets that changed since this was last asked for this cluster."""
        mine = {entry for entry in self._stale if entry[0] == namespace and entry[2] == cluster}
        self._stale -= mine
        return {entry[1] for entry in mine}

    def mark_stale(self, namespace: str, cluster: str, secrets: Iterable[str]) -> None:
        """Say that these Secrets could not be read and must be read again."""
        self._stale |= {(namespace, name, cluster) for name in secrets}

    def _cache(self, kind: Kind, namespace: str) -> Cache:
        return self.caches.get((kind.name, namespace)) or self.caches[kind.name, None]

    def _child_changed(self, kind: Kind, item: Object, gone: bool) -> None:
        group = group_of(item)
        if group is not None:
            self._wake(*group)

    def _secret_of_interest(self, item: Object) -> Object | None:
        meta = item["metadata"]
        if key_of(item) not in self._interest and group_of(item) is None:
            return None
        kept = ("namespace", "name", "uid", "resourceVersion", "labels", "ownerReferences")
        return {"metadata": {field: meta[field] for field in kept if field in meta}}

    def _secret_changed(self, kind: Kind, item: Object, gone: bool) -> None:
        namespace, name = key_of(item)
        for cluster in self._interest.get((namespace, name), ()):
            self._stale.add((namespace, name, cluster))
            self._wake(namespace, cluster)
        group = group_of(item)
        if group is not None:
            self._wake(*group)
