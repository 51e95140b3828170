"""Leadership by a Lease: one operator acts; the Lease's renew time is its heartbeat."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

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


class Lock(LeaseLock):  # type: ignore[misc]  # the library has no types
    """The library's lock on a Lease, whose creation it sends with an argument that its own client refuses."""

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        """Make the Lease; False when another process was faster or the server does not take it."""
        metadata = kubernetes_client.V1ObjectMeta(name=name)
        body = kubernetes_client.V1Lease(metadata=metadata, spec=self.update_lease(election_record))
        try:
            await self.api_instance.create_namespaced_lease(namespace, body)
        except kubernetes_client.ApiException as error:
            logger.warning("the Lease %s/%s was not made: %s", namespace, name, error.reason)
            return False
        return True


Work = Callable[[], Coroutine[Any, Any, None]]


async def lead(api: Api, namespace: str, identity: str, work: Work) -> None:
    """Wait for leadership, do the work, and return when leadership is lost or the work has ended.

    The caller must end the process then: two leaders would each believe that they stop one broker at a time. Raises
    what the work raised; the library alone would go on renewing the Lease for work that has died.
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
