"""Events for people: one per action, and none twice within ten minutes."""

import logging
import time
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from queen_operator.api import names
from queen_operator.cluster.client import Api, ApiError, Object
from queen_operator.cluster.kinds import EVENT

logger = logging.getLogger(__name__)

QUIET_SECONDS: Final = 600.0
MOST_REMEMBERED: Final = 2000


class Events:
    """Writes Events about QueenClusters. Trouble with an Event is logged and never stops a round."""

    def __init__(self, api: Api, reporter: str) -> None:
        self._api = api
        self._reporter = reporter
        self._told: dict[tuple[str, str, str], float] = {}

    async def tell(self, resource: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Write an Event unless the same one was written lately."""
        meta = resource["metadata"]
        key = (meta["uid"], reason, message)
        now = time.monotonic()
        if now - self._told.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        if len(self._told) >= MOST_REMEMBERED:
            self._told = {k: told for k, told in self._told.items() if now - told < QUIET_SECONDS}
        self._told[key] = now
        try:
            await self._api.create(EVENT, meta["namespace"], self._body(meta, reason, message, warning))
        except ApiError as error:
            logger.warning("an event about %s/%s was not written: %s", meta["namespace"], meta["name"], error.message)

    def _body(self, meta: dict[str, Any], reason: str, message: str, warning: bool) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}", "namespace": meta["namespace"]},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta.get("resourceVersion", ""),
            },
            "reason": reason,
            "message": message[:1024],
            "type": "Warning" if warning else "Normal",
            "source": {"component": names.FIELD_MANAGER},
            "reportingComponent": names.FIELD_MANAGER,
            "reportingInstance": self._reporter,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
