"""HTTP to brokers and spool keepers: short, few, and never on a route that could harm.

Two routes are left alone whatever happens. ``/health`` takes a database connection for each call, and on a frozen
database those calls use up what pushes need. A GET of the maintenance route can stop a broker's drain for good: it
changes the flag in the process without starting the drain, and the broker's own reconcile then sees no difference.
"""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final

import aiohttp
from yarl import URL

from queen_operator.api.names import HTTP_PORT, KEEPER_PORT
from queen_operator.broker.keeper import read_spool
from queen_operator.broker.prometheus import Page, read_page
from queen_operator.planning.observed import BrokerPage, Spool

_log = logging.getLogger(__name__)

LARGEST_BODY_BYTES: Final = 1024 * 1024
CONNECTIONS: Final = 64
# The answer to a maintenance POST is not worth waiting for: on a frozen database it comes at the thaw, while the flag
# is set at once.
MAINTENANCE_SECONDS: Final = 1.0

_ALIVE: Final = "/metrics"
_PAGE: Final = "/metrics/prometheus"
_SPOOL: Final = "/spool"
_MAINTENANCE: Final = "/api/v1/system/maintenance"
_MESH: Final = "/internal/api/shared-state/stats"
_NO_ANSWER: Final = (aiohttp.ClientError, OSError, ValueError)


class _Trouble(Enum):
    """Why there is no answer."""

    SILENT = "no answer in time"
    UNREACHABLE = "the connection failed"


@dataclass(frozen=True, slots=True)
class _Answer:
    """An HTTP answer; ``whole`` is false when the body was longer than is read here."""

    status: int
    body: bytes
    whole: bool


class Polls:
    """All HTTP of one operator process: one session, made in the loop that first asks.

    Calls share ``CONNECTIONS`` slots. The time limit of a call starts when it has its slot: waiting for one's turn
    must not look like a broker that hangs. Each call has a connection of its own, since a kept one goes on answering
    on a broker that has closed its listener, and pod addresses are used again.
    """

    def __init__(
        self, *, timeout_seconds: float = 2.5, broker_port: int = HTTP_PORT, keeper_port: int = KEEPER_PORT
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._broker_port = broker_port
        self._keeper_port = keeper_port
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def spool(self, pod_ip: str, now: datetime) -> Spool | None:
        """Ask a pod's keeper what is in the spool; ``None`` when it cannot be asked or does not say it properly."""
        answer = await self._get(pod_ip, self._keeper_port, _SPOOL)
        if isinstance(answer, _Trouble):
            return None
        if answer.status != 200 or not answer.whole:
            _log.debug("keeper of %s: status %d, %d bytes", pod_ip, answer.status, len(answer.body))
            return None
        return read_spool(answer.body, now)

    async def page(self, pod_ip: str, now: datetime, *, ask_database: bool = True) -> BrokerPage:
        """Ask a broker whether it lives and what it counts; both pages at once.

        ``alive and not answering`` means only one thing, a Prometheus page that did not come in time: a broker whose
        other page answers while this connection fails is on its way out, and is not called alive. A page longer than
        ``LARGEST_BODY_BYTES`` counts for what its beginning says.

        With ``ask_database`` false only ``/metrics`` is asked, which needs no database, and ``answering`` is false:
        while PostgreSQL is known to be frozen, each Prometheus page holds a connection that a push could use.
        """
        if not ask_database:
            alive = await self._get(pod_ip, self._broker_port, _ALIVE)
            return BrokerPage(asked_at=now, alive=_is_ok(alive), answering=False)
        alive, page = await asyncio.gather(
            self._get(pod_ip, self._broker_port, _ALIVE), self._get(pod_ip, self._broker_port, _PAGE)
        )
        if isinstance(page, _Trouble):
            lives = _is_ok(alive) and page is _Trouble.SILENT
            return BrokerPage(asked_at=now, alive=lives, answering=False)
        said = read_page(page.body, whole=page.whole) if page.status == 200 else Page()
        return BrokerPage(
            asked_at=now,
            alive=_is_ok(alive),
            answering=True,
            maintenance=said.maintenance,
            pending=said.pending,
            failed_writes=said.failed_writes,
            database_healthy=said.database_healthy,
            cluster_series=said.cluster_series,
        )

    async def set_maintenance(self, pod_ip: str, enabled: bool, token: str | None) -> bool | None:
        """Switch one broker's maintenance mode; true when it confirms, false when it did not happen.

        ``None`` means that the request was sent and no answer came: probably done, since the broker sets the flag
        before it writes to PostgreSQL. The next ``page`` tells. ``token`` needs the role admin when JWT is on.
        """
        headers = {} if token is None else {"Authorization": f"Bearer {token.strip()}"}
        seconds = min(MAINTENANCE_SECONDS, self._timeout_seconds)
        limits = aiohttp.ClientTimeout(total=2 * seconds, sock_connect=seconds, sock_read=seconds)
        wanted = {"enabled": enabled}
        try:
            answer = await self._ask("POST", pod_ip, self._broker_port, _MAINTENANCE, limits, headers, wanted)
        except aiohttp.ConnectionTimeoutError:
            return False
        except TimeoutError:
            return None
        except _NO_ANSWER as problem:
            # Not its words: they may quote the token.
            _log.debug("POST %s to %s: %s", _MAINTENANCE, pod_ip, type(problem).__name__)
            return False
        return answer.status == 200 and _confirmed_mode(answer.body) is enabled

    async def servers_alive(self, pod_ip: str, token: str | None) -> int | None:
        """How many other brokers this one hears on the mesh; ``None`` is unknown.

        ``servers_alive`` is the only truth about the mesh: ``connected`` stays true with a wrong secret. Without peers
        or without a bound port the broker says that there is no mesh, which is unknown here, not zero. The route needs
        the role admin when JWT is on.
        """
        headers = {} if token is None else {"Authorization": f"Bearer {token.strip()}"}
        limits = aiohttp.ClientTimeout(total=self._timeout_seconds)
        try:
            answer = await self._ask("GET", pod_ip, self._broker_port, _MESH, limits, headers)
        except (TimeoutError, *_NO_ANSWER) as problem:
            _log.debug("GET %s of %s: %s", _MESH, pod_ip, type(problem).__name__)
            return None
        return _alive_in(answer.body) if answer.status == 200 else None

    async def close(self) -> None:
        """Close the session; calls in flight and later ones end as unknown. Closing twice is harmless."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _get(self, pod_ip: str, port: int, path: str) -> _Answer | _Trouble:
        """GET one page of one pod; trouble is a value and is logged at DEBUG."""
        try:
            return await self._ask("GET", pod_ip, port, path, aiohttp.ClientTimeout(total=self._timeout_seconds))
        except TimeoutError:
            _log.debug("GET %s of %s: no answer in %g s", path, pod_ip, self._timeout_seconds)
            return _Trouble.SILENT
        except _NO_ANSWER as problem:
            _log.debug("GET %s of %s: %s: %s", path, pod_ip, type(problem).__name__, problem)
            return _Trouble.UNREACHABLE

    async def _ask(
        self,
        method: str,
        pod_ip: str,
        port: int,
        path: str,
        limits: aiohttp.ClientTimeout,
        headers: Mapping[str, str] = MappingProxyType({}),
        body: Mapping[str, bool] | None = None,
    ) -> _Answer:
        url = URL.build(scheme="http", host=pod_ip, port=port, path=path)
        async with self._slots:
            session = self._open_session()
            async with session.request(
                method, url, headers=headers, json=body, timeout=limits, allow_redirects=False
            ) as response:
                content, whole = await _read(response.content)
                return _Answer(response.status, content, whole)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            raise aiohttp.ClientConnectionError("the polls are closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,  # a small body must not become a big one
            )
        return self._session


async def _read(stream: aiohttp.StreamReader) -> tuple[bytes, bool]:
    """Read a body up to the limit; the rest stays unread and goes with the connection."""
    parts: list[bytes] = []
    size = 0
    async for chunk in stream.iter_any():
        parts.append(chunk[: LARGEST_BODY_BYTES - size])
        size += len(chunk)
        if size > LARGEST_BODY_BYTES:
            return b"".join(parts), False
    return b"".join(parts), True


def _is_ok(answer: _Answer | _Trouble) -> bool:
    return isinstance(answer, _Answer) and answer.status == 200


def _alive_in(body: bytes) -> int | None:
    try:
        said = json.loads(body)
    except ValueError:
        return None
    alive = said.get("servers_alive") if isinstance(said, dict) and said.get("enabled") is True else None
    return alive if isinstance(alive, int) and not isinstance(alive, bool) else None


def _confirmed_mode(body: bytes) -> object:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer.get("maintenanceMode") if isinstance(answer, dict) else None
