"""Asks brokers, keepers and PostgreSQL beside the rounds, so that a hanging one never holds up an action."""

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from queen_operator.api.cluster import ParsedCluster
from queen_operator.broker.database import Connection, look
from queen_operator.broker.polls import Polls
from queen_operator.cluster.kinds import POD
from queen_operator.cluster.store import Store
from queen_operator.control import secrets
from queen_operator.control.memory import Memory
from queen_operator.planning.observed import Database, DatabaseState
from queen_operator.planning.views import Pod, read_pod

logger = logging.getLogger(__name__)

# A read-only PostgreSQL has spool files quarantined within half a second, and every health check stays green: the
# keeper alone tells, so it is asked often enough that the status says so within 5 s.
REST_SECONDS: Final = 3.0
BUSY_SECONDS: Final = 2.0
# A broker's pages take it a read of PostgreSQL.
PAGES_REST: Final = timedelta(seconds=9)
# Answers change the status, which is an event, which asks again: without a floor that would be a loop without pause.
SHORTEST_SECONDS: Final = 1.0
DATABASE_REST: Final = timedelta(seconds=60)
DATABASE_BUSY: Final = timedelta(seconds=5)


class Poller:
    """Keeps one cluster's answers young: all of them every 2 s while something moves.

    At rest keepers are asked every 3 s, pages of brokers every 9 s, PostgreSQL every minute.
    """

    def __init__(self, polls: Polls, store: Store, memory: Memory) -> None:
        self._polls = polls
        self._store = store
        self._memory = memory
        self._kick = asyncio.Event()

    def kick(self) -> None:
        """Ask now: a pod is new, or something changed."""
        self._kick.set()

    async def wait(self) -> None:
        """Wait until the next look is due, or until somebody asks for one."""
        await asyncio.sleep(SHORTEST_SECONDS)
        seconds = (BUSY_SECONDS if self._memory.busy else REST_SECONDS) - SHORTEST_SECONDS
        try:
            async with asyncio.timeout(seconds):
                await self._kick.wait()
        except TimeoutError:
            pass
        self._kick.clear()

    async def look(self, cluster: ParsedCluster) -> bool:
        """Ask every keeper and, when they are due, every listening broker and PostgreSQL; all at once.

        Returns whether there may be something new to decide: False when, at rest, keepers alone were asked and say
        what they said before.
        """
        items = self._store.of_cluster(POD, cluster.namespace, cluster.name).values()
        pods = [read_pod(item) for item in items]
        self._memory.forget_pods({pod.uid for pod in pods})
        now = datetime.now(UTC)
        token = secrets.admin_token(self._memory, cluster.spec)
        pages_due = {pod.uid for pod in pods if self._page_due(pod, now)}
        connection = secrets.connection(self._memory, cluster.name, cluster.spec)
        database_due = connection is not None and self._database_due(pods, now)
        before = self._held()
        async with asyncio.TaskGroup() as group:
            for pod in pods:
                if pod.ip is not None and not pod.leaving:
                    group.create_task(self._ask(pod, pod.ip, token, now, with_page=pod.uid in pages_due))
            if connection is not None and database_due:
                group.create_task(self._ask_database(connection, cluster.namespace, now))
        return self._memory.busy or bool(pages_due) or database_due or self._held() != before

    def _held(self) -> dict[str, tuple[object, ...]]:
        """What keepers said last, without what only grows with the clock."""
        return {
            uid: (spool.files, spool.bytes, spool.quarantined_files, spool.writable, spool.broken_records)
            for uid, spool in self._memory.spools.items()
        }

    def _page_due(self, pod: Pod, now: datetime) -> bool:
        if not pod.broker_started:
            return False
        page = self._memory.pages.get(pod.uid)
        return self._memory.busy or page is None or now - page.asked_at >= PAGES_REST

    async def _ask(self, pod: Pod, ip: str, token: str | None, now: datetime, *, with_page: bool) -> None:
        if pod.keeper is not None and pod.keeper.running:
            self._memory.take_spool(pod.uid, await self._polls.spool(ip, now))
        if with_page:
            # On a frozen database each call that needs it hangs on a connection that pushes need. A broker that is
            # Ready all the same is asked: it may be the operator alone that has no way there.
            seen = self._memory.database
            frozen = seen is not None and seen.state is DatabaseState.FROZEN and not pod.ready
            page = await self._polls.page(ip, now, ask_database=not frozen)
            alive = None if frozen else await self._polls.servers_alive(ip, token)
            self._memory.take_page(pod.uid, replace(page, servers_alive=alive))

    def _database_due(self, pods: list[Pod], now: datetime) -> bool:
        seen = self._memory.database
        if seen is None:
            return True
        well = seen.state is DatabaseState.REACHABLE and all(
            self._is_well(pod) for pod in pods if pod.broker is not None
        )
        well = well and not self._memory.busy
        return now - seen.asked_at >= (DATABASE_REST if well else DATABASE_BUSY)

    def _is_well(self, pod: Pod) -> bool:
        page = self._memory.pages.get(pod.uid)
        return pod.ready and page is not None and page.answering and page.database_healthy is not False

    async def _ask_database(self, connection: Connection, namespace: str, now: datetime) -> None:
        try:
            answer = await look(await secrets.as_brokers_see_it(connection, namespace), now)
        except Exception as fault:
            # Whatever it is, the keepers' answers of this look must not be lost with it.
            logger.warning("PostgreSQL at %s could not be asked: %r", connection.host, fault)
            answer = Database(now, DatabaseState.UNKNOWN, "the operator could not ask it")
        before = self._memory.database
        if before is None or before.state is not answer.state:
            place = f"{connection.host}:{connection.port}"
            logger.info("PostgreSQL at %s is %s: %s", place, answer.state, answer.message)
        self._memory.database = _steady(before, answer)


def _steady(before: Database | None, answer: Database) -> Database:
    """Keep since when the state stands, and the last known version while the server cannot be asked for it."""
    if before is None:
        return replace(answer, state_since=answer.asked_at)
    since = before.state_since if before.state is answer.state else answer.asked_at
    if answer.version is not None:
        return replace(answer, state_since=since)
    return replace(
        answer,
        state_since=since,
        version=before.version,
        max_connections=before.max_connections,
        superuser_reserved=before.superuser_reserved,
    )
