"""The operator's process: connect, wait for the CRD, lead, watch, serve; everything ends together."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import kopf

from queen_operator.api import names
from queen_operator.broker.polls import Polls
from queen_operator.cluster.client import Api, ApiError, connect
from queen_operator.cluster.events import Events
from queen_operator.cluster.lease import LEASE_NAME, lead
from queen_operator.cluster.store import Store
from queen_operator.control import handlers, metrics, server
from queen_operator.control.act import Hands
from queen_operator.control.worker import Tools
from queen_operator.control.workers import Workers

logger = logging.getLogger(__name__)

PARALLEL_ROUNDS: Final = 16
CRD_AGAIN_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """How this process was started. ``namespaces`` empty means all."""

    namespaces: tuple[str, ...]
    operator_namespace: str
    identity: str
    keeper_image: str
    kubeconfig: str | None
    port: int


class Operator:
    """One operator process."""

    def __init__(self, options: Options, api: Api, take_signals: Callable[[], None]) -> None:
        self.options = options
        self.api = api
        self._take_signals = take_signals
        self.workers = Workers()
        self.store = Store(api, options.namespaces, self.workers.wake)
        self.polls = Polls()
        self.leading = False
        self.crd_seen = False

    def live_problems(self) -> list[str]:
        """Why the process should be restarted: rounds stand still, or watches have gone silent."""
        problems = [f"the rounds of {name} stand still" for name in self.workers.stuck()]
        if self.leading and not self.store.unsynced():
            problems += [f"the watch of {kind}s is silent" for kind in self.store.silent()]
        return problems

    def ready_problems(self) -> list[str]:
        """Why the process is not ready to serve yet."""
        if not self.crd_seen:
            return [f"the CustomResourceDefinition {names.PLURAL}.{names.GROUP} is not installed"]
        if self.leading:
            return [f"{kind}s could not be listed yet" for kind in self.store.unsynced()]
        return []

    async def run(self) -> None:
        """Serve until leadership is lost or the process is told to stop."""
        runner = await server.serve(self.options.port, self.live_problems, self.ready_problems)
        try:
            await self._wait_for_crd()
            await lead(self.api, self.options.operator_namespace, self.options.identity, self._work)
        finally:
            await self.polls.close()
            await runner.cleanup()

    async def _wait_for_crd(self) -> None:
        """Wait until the API server knows QueenClusters; the operator never installs the CRD itself."""
        told = False
        while True:
            try:
                found = await self.api.get_path(f"/apis/{names.API_VERSION}")
                if any(resource["name"] == names.PLURAL for resource in found.get("resources") or ()):
                    self.crd_seen = True
                    return
            except ApiError as error:
                logger.debug("looking for the CRD: %s", error.message)
            if not told:
                logger.warning("the CustomResourceDefinition %s.%s is not installed yet", names.PLURAL, names.GROUP)
                told = True
            await asyncio.sleep(CRD_AGAIN_SECONDS)

    async def _work(self) -> None:
        self.leading = True
        metrics.LEADER.labels(LEASE_NAME).set(1)
        logger.info("leading as %s", self.options.identity)
        hands = Hands(self.api, self.store, Events(self.api, self.options.identity), self.polls)
        slots = asyncio.Semaphore(PARALLEL_ROUNDS)
        self.workers.use(Tools(hands, self.options.keeper_image, slots))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.store.run())
                await self.store.wait_synced()
                group.create_task(self._watch_clusters(group))
        finally:
            # Here and not later: once this returns the Lease is given up, and no round of ours may still act then.
            await self.workers.stop()

    async def _take_signals_back(self, started: asyncio.Event) -> None:
        """kopf takes SIGTERM for itself alone when it starts; here it must end the whole process, in order."""
        await started.wait()
        self._take_signals()

    async def _watch_clusters(self, group: asyncio.TaskGroup) -> None:
        registry = kopf.OperatorRegistry()
        handlers.register(registry, self.workers)
        started = asyncio.Event()
        group.create_task(self._take_signals_back(started))
        await kopf.operator(
            registry=registry,
            settings=handlers.settings(),
            ready_flag=started,
            standalone=True,
            clusterwide=not self.options.namespaces,
            namespaces=self.options.namespaces,
        )
        raise RuntimeError("the watch of QueenClusters ended; a process without it would look alive and be blind")


async def run(options: Options, take_signals: Callable[[], None]) -> None:
    """Connect and serve. ``take_signals`` is called whenever the process must take its signal handlers (back)."""
    api = await connect(options.kubeconfig)
    try:
        await Operator(options, api, take_signals).run()
    finally:
        await api.close()
