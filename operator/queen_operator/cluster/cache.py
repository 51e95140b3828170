"""A cache of one kind, fed by list and watch: what it holds is what the API server said last.

Problems that it is built around, each seen in the field: a stream that goes silent without closing (the client's read
limit ends it), an expired starting point (one new list, never a loop), a page token that expires in the middle of a
long list (start again), and a reader that has not yet seen its own write (``put`` takes the server's answer).
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any, Final

from queen_operator.api import names
from queen_operator.cluster.client import Api, ApiError, Gone, Object, Unavailable
from queen_operator.cluster.kinds import Kind

logger = logging.getLogger(__name__)

PAGE_SIZE: Final = "250"
WATCH_SECONDS: Final = 300
LONGEST_PAUSE_SECONDS: Final = 30.0
MOST_BURIED: Final = 1000  # an answer to a write is seconds late at most; that many deletions take longer

Key = tuple[str, str]  # namespace, name
Group = tuple[str, str]  # namespace, cluster
OnChange = Callable[[Kind, Object, bool], None]  # kind, object, is it gone
Keep = Callable[[Object], Object | None]


def version_of(item: Object) -> int:
    """The resource version as a number; 0 for one that is none."""
    text = str(item["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0


def key_of(item: Object) -> Key:
    """Namespace and name."""
    return item["metadata"]["namespace"], item["metadata"]["name"]


class Cache:
    """Objects of one kind in one namespace, or in all. ``run`` never returns, whatever trouble the server is in."""

    def __init__(
        self,
        api: Api,
        kind: Kind,
        *,
        on_change: OnChange,
        namespace: str | None = None,
        selector: str = "",
        metadata_only: bool = False,
        keep: Keep | None = None,
    ) -> None:
        self.api = api
        self.kind = kind
        self.namespace = namespace
        self.items: dict[Key, Object] = {}
        self._groups: dict[Group, dict[str, Object]] = {}
        self._buried: dict[Key, int] = {}  # version at which an object was deleted; the latest MOST_BURIED of them
        self.synced = asyncio.Event()
        self.heard_at = time.monotonic()
        self._selector = selector
        self._metadata_only = metadata_only
        self._on_change = on_change
        self._keep = keep or _without_managed_fields

    def put(self, item: Object) -> None:
        """Take the server's answer to our own write, unless the watch has already brought something newer."""
        kept = self._keep(item)
        if kept is not None:
            self._store(kept)

    def drop(self, namespace: str, name: str) -> None:
        """Forget an object that the server says is gone."""
        known = self.items.get((namespace, name))
        if known is not None:
            self._forget(known)

    def of_cluster(self, namespace: str, cluster: str) -> dict[str, Object]:
        """Objects that carry the label of this cluster, by name."""
        return self._groups.get((namespace, cluster), {})

    async def run(self) -> None:
        """List, then watch, for ever; pause with growing, jittered steps while the server is in trouble."""
        pause = 1.0
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = await self._list()
                version = await self._watch(version)
                pause = 1.0
            except Gone:
                version = None
                await asyncio.sleep(1.0 + random.random())  # noqa: S311 - never a tight loop of lists
            except ApiError as error:
                level = logging.DEBUG if isinstance(error, Unavailable) and pause <= 1.0 else logging.WARNING
                logger.log(level, "watch of %s failed, next try in %.0f s: %s", self.kind.plural, pause, error.message)
                await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _list(self) -> str:
        found: dict[Key, Object] = {}
        token = ""
        while True:
            query = {"limit": PAGE_SIZE, "labelSelector": self._selector}
            if token:
                query["continue"] = token
            page = await self.api.list_page(self.kind, self.namespace, query, metadata_only=self._metadata_only)
            for item in page.get("items") or ():
                # Items of a list do not say what they are, watched ones do; readers compare whole objects.
                item |= {"apiVersion": self.kind.api_version, "kind": self.kind.name}
                kept = self._keep(item)
                if kept is not None:
                    found[key_of(kept)] = kept
            token = (page.get("metadata") or {}).get("continue", "")
            if not token:
                break
        gone = [item for key, item in self.items.items() if key not in found]
        changed = [item for key, item in found.items() if self.items.get(key) != item]
        self.items, self._groups = {}, {}
        for item in found.values():
            self._store(item)
        self.heard_at = time.monotonic()
        self.synced.set()
        for item in gone:
            self._on_change(self.kind, item, True)
        for item in changed:
            self._on_change(self.kind, item, False)
        return str(page["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> str:
        query = {
            "labelSelector": self._selector,
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS + random.randrange(60)),  # noqa: S311 - not all at the same second
        }
        async for event in self.api.watch(self.kind, self.namespace, query, metadata_only=self._metadata_only):
            self.heard_at = time.monotonic()
            item: Object = event["object"]
            version = str(item["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK":
                self._take(item, gone=event["type"] == "DELETED")
        return version

    def _take(self, item: Object, *, gone: bool) -> None:
        kept = self._keep(item)
        if kept is None:
            return
        before = self.items.get(key_of(kept))
        if gone:
            # An answer to our own write may come after this and must not raise the dead.
            self._bury(kept)
        else:
            self._store(kept)
        self._on_change(self.kind, kept, gone)
        if before is not None and group_of(before) != group_of(kept):
            self._on_change(self.kind, before, True)  # a cluster has lost it: its label was taken off

    def _store(self, item: Object) -> None:
        key = key_of(item)
        known = self.items.get(key)
        if version_of(item) <= self._buried.get(key, -1):
            return
        if known is not None and version_of(known) > version_of(item):
            return  # our own write was answered before the watch brought what was there before it
        if known is not None and group_of(known) != group_of(item):
            self._forget(known)
        self.items[key] = item
        group = group_of(item)
        if group is not None:
            self._groups.setdefault(group, {})[key[1]] = item

    def _bury(self, item: Object) -> None:
        key = key_of(item)
        self._buried.pop(key, None)  # the latest deletion is the youngest entry
        self._buried[key] = version_of(item)
        if len(self._buried) > MOST_BURIED:
            del self._buried[next(iter(self._buried))]
        self._forget(item)

    def _forget(self, item: Object) -> None:
        key = key_of(item)
        group = group_of(self.items.pop(key, item))
        if group is not None and group in self._groups:
            self._groups[group].pop(key[1], None)
            if not self._groups[group]:
                del self._groups[group]


def group_of(item: Object) -> Group | None:
    """The cluster that an object's label names, or None."""
    cluster = (item["metadata"].get("labels") or {}).get(names.CLUSTER_LABEL)
    return (item["metadata"]["namespace"], cluster) if cluster else None


def _without_managed_fields(item: Object) -> Object:
    meta: dict[str, Any] = item["metadata"]
    meta.pop("managedFields", None)
    return item
