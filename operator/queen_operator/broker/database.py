"""The operator's own look at PostgreSQL, with the brokers' credentials: brokers hide the cause, PostgreSQL does not.

A wrong user, a missing database and too many connections are all ``db error`` in a broker's log.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import asyncpg

from queen_operator.broker.tls import context_for
from queen_operator.broker.verdicts import Verdict, clean, place_of, verdict_of, verdict_of_lookup
from queen_operator.planning.observed import Database, DatabaseState

OLDEST_VERSION: Final = 14  # brokers refuse to start below
APPLICATION_NAME: Final = "queen-operator"

# transaction_read_only is what a write would meet: standby, server, database and role settings together.
# reserved_connections came with PostgreSQL 16 and is kept from ordinary users as well.
_QUESTION: Final = """
SELECT pg_catalog.current_setting('server_version') AS version,
       pg_catalog.current_setting('server_version_num')::int AS version_number,
       pg_catalog.current_setting('transaction_read_only') = 'on' AS read_only,
       pg_catalog.pg_is_in_recovery() AS in_recovery,
       pg_catalog.current_setting('max_connections')::int AS max_connections,
       pg_catalog.current_setting('superuser_reserved_connections')::int
         + coalesce(nullif(pg_catalog.current_setting('reserved_connections', true), ''), '0')::int AS reserved
"""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one database. The password is in no ``repr``, so that no log line can hold it."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    tls: bool
    verify: bool
    ca_pem: str | None = field(repr=False)

    @property
    def place(self) -> str:
        """Host and port for a sentence."""
        return place_of(self.host, self.port)


async def look(connection: Connection, now: datetime, *, timeout_seconds: float = 3.0) -> Database:
    """Ask PostgreSQL once, over one connection, and say what it is like; trouble is a state, never an exception.

    ``timeout_seconds`` covers everything: the look-up of the name, the connection, TLS, authentication and the answer.
    No answer is ``Frozen``, whether packets are dropped, nobody accepts or a server process hangs: for a push it is
    all the same, it hangs with them. Only a name server that does not answer is ``Unknown``.
    """
    try:
        connection.password.encode()
        tls = context_for(verify=connection.verify, ca_pem=connection.ca_pem) if connection.tls else None
    except UnicodeError:  # the driver's own error would quote a part of it
        message = "the password given for PostgreSQL is not text in UTF-8"
        return Database(asked_at=now, state=DatabaseState.REJECTED, message=message)
    except ValueError as problem:
        return Database(asked_at=now, state=DatabaseState.REJECTED, message=str(problem))
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    answer = await _why_not_found(connection, deadline) or await _ask(connection, tls, deadline, timeout_seconds)
    if isinstance(answer, Verdict):
        return Database(asked_at=now, state=answer.state, message=clean(answer.message, *_secrets(connection)))
    return _database_of(answer, connection, now)


async def _why_not_found(connection: Connection, deadline: float) -> Verdict | None:
    """Look the host's name up first: the driver would not tell a silent name server from a silent PostgreSQL."""
    if _is_address(connection.host):
        return None
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(deadline):
            await loop.getaddrinfo(connection.host, connection.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:  # a TimeoutError is an OSError
        return verdict_of_lookup(problem, connection.host)
    return None


async def _ask(
    connection: Connection, tls: ssl.SSLContext | None, deadline: float, timeout_seconds: float
) -> Mapping[str, Any] | Verdict:
    try:
        async with asyncio.timeout_at(deadline):
            session = await _connect(connection, tls, timeout_seconds)
            try:
                row: Mapping[str, Any] = await session.fetchrow(_QUESTION)
            except BaseException:
                session.terminate()  # close() would wait for a server that has just not answered
                raise
    except TimeoutError:
        message = f"no answer from PostgreSQL at {connection.place} within {timeout_seconds:g} s"
        return Verdict(DatabaseState.FROZEN, message)
    except Exception as problem:  # the driver raises what it likes when the other side talks nonsense
        return verdict_of(problem, connection.place)
    await _say_goodbye(session, deadline)
    return row


async def _connect(connection: Connection, tls: ssl.SSLContext | None, timeout_seconds: float) -> Any:
    """Open one session. Whatever the driver would take from the environment (PG...) or from files is given here."""
    return await asyncpg.connect(
        host=connection.host,
        port=connection.port,
        database=connection.database,
        user=connection.user,
        password=connection.password,
        ssl=tls or False,
        direct_tls=False,
        target_session_attrs="any",
        timeout=timeout_seconds,
        statement_cache_size=0,  # a pooler may hand the next statement to another server process
        server_settings={"application_name": APPLICATION_NAME},
    )


async def _say_goodbye(session: Any, deadline: float) -> None:
    """Close politely, so that PostgreSQL logs nothing, but not at any price: the answer is known already."""
    try:
        async with asyncio.timeout_at(deadline):
            await session.close()
    except Exception:  # the driver has then cut the connection itself
        session.terminate()


def _database_of(row: Mapping[str, Any], connection: Connection, now: datetime) -> Database:
    version = str(row["version"]).split(maxsplit=1)[0]
    state, message = DatabaseState.REACHABLE, ""
    if row["version_number"] < OLDEST_VERSION * 10_000:
        state = DatabaseState.UNSUPPORTED_VERSION
        message = f"PostgreSQL at {connection.place} is version {version}; brokers need {OLDEST_VERSION} or newer"
    elif row["in_recovery"]:
        state = DatabaseState.READ_ONLY
        message = f"PostgreSQL at {connection.place} is a standby (in recovery) and takes no writes"
    elif row["read_only"]:
        state = DatabaseState.READ_ONLY
        message = f"PostgreSQL at {connection.place} takes no writes: default_transaction_read_only is on"
    return Database(
        asked_at=now,
        state=state,
        message=message,
        version=version,
        max_connections=row["max_connections"],
        superuser_reserved=row["reserved"],
    )


def _secrets(connection: Connection) -> tuple[str, ...]:
    """Return what no message may hold; a password that equals a name in plain sight would only spoil the sentence."""
    shown = (connection.host, connection.database, connection.user)
    return () if connection.password in shown else (connection.password,)


def _is_address(host: str) -> bool:
    """Tell whether there is nothing to look up: an IP address or the directory of a Unix socket."""
    if host.startswith("/"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
