"""Leadership by a Lease: one operator acts; the Lease's renew time is its heartbeat."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio.leaderelection import electionconfig, leaderelection
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from queen_operator.cluster.client import Api

logger = logging.getLogger(__name__)

LEASE_NAME: Final = "queen-operator"
# A new leader takes over at most this long after the old one's last sign of life.
LEASE_SECONDS: Final = 30
RENEW_DEADLINE_SECONDS: Final = 20
RETRY_SECONDS: Final = 5
# A last try of two requests that begins just before the deadline must end before the Lease does.
CALL_SECONDS: Final = 4
# The end of a process must not wait for a server that is away: the Lease runs out by itself then.
RELEASE_SECONDS: Final = 5
# A renewal that was cut off may still arrive between our look and our write.
RELEASE_TRIES: Final = 3


class Lock(LeaseLock):  # type: ignore[misc]  # the library has no types
    """The library's lock on a Lease, with an end to every request, and trouble of the network as an ordinary failure.

    The library waits five minutes for an answer, so that another process would lead beside this one, and lets a
    refused connection end the work of a leader that has the whole renew deadline left.
    """

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        """Read the Lease: True and its record, or False and what went wrong."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                found: tuple[bool, Any] = await super().get(name, namespace)
                return found
        except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
            return False, kubernetes_client.ApiException(status=0, reason=repr(error))

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        """Make the Lease; False when another process was faster or the server does not take it.

        The library's own sends an argument that its own client refuses.
        """
        metadata = kubernetes_client.V1ObjectMeta(name=name)
        body = kubernetes_client.V1Lease(metadata=metadata, spec=self.update_lease(election_record))
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self.api_instance.create_namespaced_lease(namespace, body)
        except (kubernetes_client.ApiException, aiohttp.ClientError, OSError) as error:
            logger.warning("the Lease %s/%s was not made: %r", namespace, name, error)
            return False
        return True

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Renew or take the Lease; False when that did not succeed."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return bool(await super().update(name, namespace, updated_record))
        except (aiohttp.ClientError, OSError) as error:
            logger.warning("the Lease %s/%s was not renewed: %r", namespace, name, error)
            return False

    async def release(self) -> None:
        """Give the Lease up if it is ours, so that the next leader need not wait until it has run out.

        Only once the work has ended: another process may lead from the next moment on. A Lease that somebody else
        has taken meanwhile is left alone, and one that cannot be given up runs out by itself.
        """
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                for _ in range(RELEASE_TRIES):
                    if await self._released():
                        return
        except (kubernetes_client.ApiException, aiohttp.ClientError, OSError) as error:
            logger.warning("the Lease %s/%s was not released: %r", self.namespace, self.name, error)

    async def _released(self) -> bool:
        """One look and one write on exactly what was seen; False when it changed between the two."""
        lease = await self.api_instance.read_namespaced_lease(self.name, self.namespace)
        if lease.spec is None or lease.spec.holder_identity != self.identity:
            return True
        lease.spec.holder_identity = ""
        try:
            await self.api_instance.replace_namespaced_lease(self.name, self.namespace, lease)
        except kubernetes_client.ApiException as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        logger.info("the Lease %s/%s was released", self.namespace, self.name)
        return True


Work = Callable[[], Coroutine[Any, Any, None]]


async def lead(api: Api, namespace: str, identity: str, work: Work) -> None:
    """Wait for leadership, do the work, and return when leadership is lost or the work has ended.

    The caller must end the process then: two leaders would each believe that they stop one broker at a time. Raises
    what the work raised; the library alone would go on renewing the Lease for work that has died. When it returns,
    the work has ended, its own cleaning up included, and the Lease is free for another process.
    """
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    working: list[asyncio.Task[Any]] = []

    async def watched() -> None:
        task = asyncio.current_task()
        if task is not None:
            working.append(task)
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    async def lost() -> None:
        logger.error("leadership was lost; the process ends")

    lock = Lock(LEASE_NAME, namespace, identity, api.client)
    election = electionconfig.Config(
        lock,
        lease_duration=LEASE_SECONDS,
        renew_deadline=RENEW_DEADLINE_SECONDS,
        retry_period=RETRY_SECONDS,
        onstarted_leading=watched,
        onstopped_leading=lost,
    )
    electing = asyncio.create_task(leaderelection.LeaderElection(election).run())
    try:
        await asyncio.wait({electing, ended}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            ended.result()
        if electing.done():
            electing.result()
    finally:
        # The library leaves the work running when it is itself cancelled.
        for task in (electing, *working):
            task.cancel()
        await asyncio.gather(electing, *working, return_exceptions=True)
        await lock.release()
