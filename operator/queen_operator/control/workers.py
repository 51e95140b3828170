"""The workers of the process: started when a QueenCluster appears, woken by its children, stopped when it is gone."""

import asyncio
import logging
from typing import Any, Final

from queen_operator.control import metrics
from queen_operator.control.worker import Tools, Worker

logger = logging.getLogger(__name__)

# A round takes a second at most once everything answers; this is far beyond any backoff and any slow API server.
STUCK_AFTER_SECONDS: Final = 300.0

Key = tuple[str, str]  # namespace, name


class Workers:
    """All clusters that are served. One bad cluster never stops another."""

    def __init__(self) -> None:
        self._tools: Tools | None = None
        self._workers: dict[Key, tuple[Worker, asyncio.Task[None]]] = {}

    def use(self, tools: Tools) -> None:
        """Give the workers what they work with; called once, before the first resource arrives."""
        self._tools = tools

    def take(self, resource: dict[str, Any]) -> None:
        """Start or wake the worker of this resource."""
        meta = resource["metadata"]
        key = (meta["namespace"], meta["name"])
        known = self._workers.get(key)
        if known is not None and known[0].memory.resource["metadata"]["uid"] != meta["uid"]:
            # Deleted and made again: nothing that was remembered of the old one holds for the new one.
            self.forget(*key, known[0].memory.resource["metadata"]["uid"])
            known = None
        if known is not None:
            known[0].take(resource)
            return
        if self._tools is None:
            raise RuntimeError("a resource arrived before the workers had their tools")
        worker = Worker(self._tools, resource, on_gone=self.forget)
        task = asyncio.create_task(worker.run(), name=f"{key[0]}/{key[1]}")
        task.add_done_callback(_report_end)
        self._workers[key] = (worker, task)
        metrics.CLUSTERS.set(len(self._workers))

    def wake(self, namespace: str, cluster: str) -> None:
        """Wake the worker of a cluster one of whose children changed."""
        known = self._workers.get((namespace, cluster))
        if known is not None:
            known[0].wake()

    def forget(self, namespace: str, name: str, uid: str) -> None:
        """Stop serving a cluster that is gone; one of the same name that was made since is another one."""
        known = self._workers.get((namespace, name))
        if known is not None and known[0].memory.resource["metadata"]["uid"] == uid:
            del self._workers[namespace, name]
            known[1].cancel()
            if self._tools is not None:
                self._tools.hands.store.refer(namespace, name, ())
        metrics.CLUSTERS.set(len(self._workers))

    def stuck(self) -> list[str]:
        """Clusters whose rounds have stopped, or whose worker ended."""
        now = asyncio.get_running_loop().time()
        found = []
        for (namespace, name), (worker, task) in self._workers.items():
            if task.done() or now - worker.finished_at > STUCK_AFTER_SECONDS:
                found.append(f"{namespace}/{name}")
        return found

    async def stop(self) -> None:
        """Stop every worker and wait until its round has ended."""
        tasks = [task for _, task in self._workers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._workers.clear()


def _report_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("the worker of %s ended", task.get_name(), exc_info=task.exception())
