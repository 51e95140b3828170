"""Every state of PostgreSQL, each met on a real server."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from queen_operator.broker.database import Connection, look
from queen_operator.planning.observed import Database, DatabaseState
from tests.unit.broker.listeners import Handler, listening, raw
from tests.unit.broker.loops import LONG_SECONDS, NOW, run
from tests.unit.broker.postgres_server import ADMIN, ADMIN_PASSWORD, PostgresServer, free_port
from tests.unit.broker.proxies import READY_FOR_QUERY, proxy

PASSWORD = "a-good-secret"


def good(server: PostgresServer) -> Connection:
    return Connection("127.0.0.1", server.port, "queen", "queen", PASSWORD, tls=False, verify=True, ca_pem=None)


def admin(server: PostgresServer) -> Connection:
    return replace(good(server), database="postgres", user=ADMIN, password=ADMIN_PASSWORD)


def seen(connection: Connection, timeout_seconds: float = 10.0) -> Database:
    database = run(look(connection, NOW, timeout_seconds=timeout_seconds))
    assert database.asked_at == NOW
    assert connection.password not in database.message
    assert "\n" not in database.message
    return database


def failed(connection: Connection, timeout_seconds: float = 10.0) -> tuple[DatabaseState, str]:
    """Look, and expect nothing but a state and a sentence."""
    database = seen(connection, timeout_seconds)
    assert (database.version, database.max_connections, database.superuser_reserved) == (None, None, None)
    return database.state, database.message


def test_a_healthy_server_is_reachable_and_tells_its_limits(postgres: PostgresServer) -> None:
    version = postgres.sql("SHOW server_version").split()[0]
    assert seen(good(postgres)) == Database(NOW, DatabaseState.REACHABLE, "", version, 40, 3)


def test_a_look_is_named_and_leaves_no_session_and_no_line_in_the_servers_log(own_postgres: PostgresServer) -> None:
    own_postgres.settings |= {"log_connections": "on", "log_disconnections": "on", "log_min_messages": "debug1"}
    own_postgres.start()
    assert seen(admin(own_postgres)).state is DatabaseState.REACHABLE
    own_postgres.wait_for_log("disconnection: session time")
    log = own_postgres.log.read_text()
    assert log.count("application_name=queen-operator") == 1
    assert "unexpected EOF" not in log
    assert own_postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'queen-operator'") == "0"


def test_the_environment_of_the_operator_changes_nothing(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGHOST": "elsewhere", "PGPORT": "1", "PGUSER": "nobody", "PGDATABASE": "none", "PGPASSWORD": "x",
        "PGSSLMODE": "verify-full", "PGTARGETSESSIONATTRS": "standby", "PGSSLNEGOTIATION": "direct",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert seen(good(postgres)).state is DatabaseState.REACHABLE


def test_a_unix_socket_is_asked(postgres: PostgresServer) -> None:
    assert seen(replace(good(postgres), host=str(postgres.directory.parent))).state is DatabaseState.REACHABLE


def test_a_password_is_in_no_repr(postgres: PostgresServer) -> None:
    connection = replace(good(postgres), ca_pem="-----BEGIN")
    assert PASSWORD not in repr(connection)
    assert PASSWORD not in f"{connection}"


# Refused: nobody there.


def test_a_port_without_a_server_is_refused() -> None:
    port = free_port()
    connection = Connection("127.0.0.1", port, "queen", "queen", PASSWORD, False, True, None)
    assert failed(connection) == (DatabaseState.REFUSED, f"PostgreSQL at 127.0.0.1:{port} refuses connections")


def test_a_name_whose_every_address_refuses_is_refused() -> None:
    port = free_port()
    connection = Connection("localhost", port, "queen", "queen", PASSWORD, False, True, None)
    state, message = failed(connection)
    assert state is DatabaseState.REFUSED
    assert f"localhost:{port} refuses connections" in message


def test_a_missing_unix_socket_is_refused(tmp_path: Path) -> None:
    connection = Connection(str(tmp_path), 5432, "queen", "queen", PASSWORD, False, True, None)
    state, message = failed(connection)
    assert state is DatabaseState.REFUSED
    assert "no such socket" in message


@pytest.mark.parametrize("host", ["double..dot", "x" * 64 + ".example", "a,b..c"])
def test_a_host_that_is_no_name_is_refused_with_the_name(host: str) -> None:
    state, message = failed(Connection(host, 5432, "queen", "queen", PASSWORD, False, True, None))
    assert state is DatabaseState.REFUSED
    assert f"host {host} is not a possible host name" in message


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("heard", [0, 8])
def test_a_server_that_hangs_up_without_a_word_is_refused(heard: int, tls: bool) -> None:
    async def hang_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(heard)

    database = run(look_at_something_else(hang_up, tls))
    assert database.state is DatabaseState.REFUSED
    assert "closes the connection without a proper answer" in database.message


def test_a_server_that_dies_while_it_is_asked_is_refused(postgres: PostgresServer) -> None:
    async def ask() -> Database:
        async with proxy(postgres.port, hang_up_when=lambda answer: READY_FOR_QUERY in answer) as spoiled:
            return await look(replace(good(postgres), port=spoiled.port), NOW)

    database = run(ask())
    assert database.state is DatabaseState.REFUSED
    assert "closes the connection" in database.message


def test_a_server_that_takes_no_connections_yet_is_refused_with_its_words(own_postgres: PostgresServer) -> None:
    own_postgres.settings["hot_standby"] = "off"
    own_postgres.start_as_standby()
    own_postgres.wait_for_log("entering standby mode")
    state, message = failed(admin(own_postgres))
    assert state is DatabaseState.REFUSED
    assert message.startswith(f"PostgreSQL at 127.0.0.1:{own_postgres.port} says: the database system is ")
    assert message.endswith("(Hot standby mode is disabled)")


# Frozen: no answer.


def test_a_stopped_postmaster_is_frozen_and_well_again_afterwards(postgres: PostgresServer) -> None:
    with postgres.frozen():
        state, message = failed(good(postgres), timeout_seconds=0.5)
        assert state is DatabaseState.FROZEN
        assert message == f"no answer from PostgreSQL at 127.0.0.1:{postgres.port} within 0.5 s"
    assert seen(good(postgres)).state is DatabaseState.REACHABLE


@pytest.mark.parametrize("tls", [False, True])
def test_a_listener_that_never_answers_is_frozen(tls: bool) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        connection = Connection("127.0.0.1", listener.getsockname()[1], "queen", "queen", PASSWORD, tls, False, None)
        assert failed(connection, timeout_seconds=0.3)[0] is DatabaseState.FROZEN


def test_dropped_packets_are_frozen(full_port: int) -> None:
    connection = Connection("127.0.0.1", full_port, "queen", "queen", PASSWORD, False, True, None)
    assert failed(connection, timeout_seconds=0.3)[0] is DatabaseState.FROZEN


@pytest.mark.parametrize("stage", [b"R\x00\x00\x00", READY_FOR_QUERY, b"T\x00\x00"], ids=["login", "query", "rows"])
def test_a_server_that_freezes_half_way_is_frozen(postgres: PostgresServer, stage: bytes) -> None:
    async def ask() -> Database:
        async with proxy(postgres.port, freeze_when=lambda answer: stage in answer) as spoiled:
            database = await look(replace(good(postgres), port=spoiled.port), NOW, timeout_seconds=0.5)
            await asyncio.wait_for(spoiled.left_alone.wait(), LONG_SECONDS)
            return database

    assert run(ask()).state is DatabaseState.FROZEN


def test_a_cancelled_look_ends_at_once(full_port: int) -> None:
    async def ask() -> None:
        connection = Connection("127.0.0.1", full_port, "queen", "queen", PASSWORD, False, True, None)
        call = asyncio.create_task(look(connection, NOW, timeout_seconds=1000.0))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    run(ask())


# Rejected: PostgreSQL says no.


def test_a_wrong_password_is_rejected_with_postgresqls_words(postgres: PostgresServer) -> None:
    assert failed(replace(good(postgres), password="a-wrong-secret")) == (
        DatabaseState.REJECTED,
        f'PostgreSQL at 127.0.0.1:{postgres.port} says: password authentication failed for user "queen"',
    )


@pytest.mark.parametrize("password", ["", "\udc80", "\x00", "\u0007", "a" * 100_000])
def test_a_strange_password_is_rejected_and_not_shown(postgres: PostgresServer, password: str) -> None:
    database = run(look(replace(good(postgres), password=password), NOW))
    assert database.state is DatabaseState.REJECTED
    assert len(database.message) < 500
    assert not password or password not in database.message


def test_an_unknown_user_is_rejected(postgres: PostgresServer) -> None:
    state, message = failed(replace(good(postgres), user="nobody"))
    assert state is DatabaseState.REJECTED
    assert 'authentication failed for user "nobody"' in message


def test_a_missing_database_is_rejected(postgres: PostgresServer) -> None:
    state, message = failed(replace(good(postgres), database="missing"))
    assert state is DatabaseState.REJECTED
    assert message.endswith('says: database "missing" does not exist')


def test_a_database_without_a_connect_privilege_is_rejected(postgres: PostgresServer) -> None:
    postgres.sql("CREATE DATABASE private")
    postgres.sql("REVOKE CONNECT ON DATABASE private FROM PUBLIC")
    state, message = failed(replace(good(postgres), database="private"))
    assert state is DatabaseState.REJECTED
    assert message.endswith('denied for database "private" (User does not have CONNECT privilege)')


def test_a_database_that_takes_no_connections_is_rejected(postgres: PostgresServer) -> None:
    postgres.sql("CREATE DATABASE closed ALLOW_CONNECTIONS false")
    state, message = failed(replace(good(postgres), database="closed"))
    assert state is DatabaseState.REJECTED
    assert '"closed"' in message


def test_a_host_that_pg_hba_conf_turns_away_is_rejected(postgres: PostgresServer) -> None:
    state, message = failed(replace(good(postgres), user="stranger"))
    assert state is DatabaseState.REJECTED
    assert "pg_hba.conf" in message


# Too many.


def test_a_role_at_its_limit_has_too_many_connections(postgres: PostgresServer) -> None:
    postgres.sql(f"CREATE ROLE limited LOGIN CONNECTION LIMIT 0 PASSWORD '{PASSWORD}'")
    state, message = failed(replace(good(postgres), user="limited"))
    assert state is DatabaseState.TOO_MANY_CONNECTIONS
    assert message.endswith('says: too many connections for role "limited"')


def test_a_full_server_has_too_many_connections(own_postgres: PostgresServer) -> None:
    own_postgres.settings |= {"max_connections": "2", "superuser_reserved_connections": "0", "max_wal_senders": "0"}
    own_postgres.start()

    async def ask() -> Database:
        place = {"host": "127.0.0.1", "port": own_postgres.port, "database": "postgres"}
        held = [await asyncpg.connect(**place, user=ADMIN, password=ADMIN_PASSWORD, ssl=False) for _ in range(2)]
        database = await look(admin(own_postgres), NOW)
        for session in held:
            await session.close()
        return database

    database = run(ask())
    assert database.state is DatabaseState.TOO_MANY_CONNECTIONS
    assert database.message.endswith("says: sorry, too many clients already")


# Read-only.


def test_a_server_set_to_read_only_is_read_only(own_postgres: PostgresServer) -> None:
    own_postgres.start()
    assert seen(admin(own_postgres)).state is DatabaseState.REACHABLE
    own_postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    own_postgres.sql("SELECT pg_reload_conf()")
    own_postgres.wait_for_log('"default_transaction_read_only" changed to "on"')
    database = seen(admin(own_postgres))
    assert database.state is DatabaseState.READ_ONLY
    assert database.message.endswith("takes no writes: default_transaction_read_only is on")
    assert (database.max_connections, database.superuser_reserved) == (40, 3)


def test_a_role_set_to_read_only_is_read_only(postgres: PostgresServer) -> None:
    postgres.sql(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    postgres.sql("ALTER ROLE reader SET default_transaction_read_only = on")
    assert seen(replace(good(postgres), user="reader")).state is DatabaseState.READ_ONLY


def test_a_standby_is_read_only(own_postgres: PostgresServer) -> None:
    own_postgres.start_as_standby()
    own_postgres.wait_for_log("ready to accept read-only connections")
    database = seen(admin(own_postgres))
    assert database.state is DatabaseState.READ_ONLY
    assert database.message.endswith("is a standby (in recovery) and takes no writes")


# Versions.


@pytest.mark.parametrize(
    ("number", "text", "state"),
    [
        (130022, b"13.22", DatabaseState.UNSUPPORTED_VERSION),
        (140000, b"14.00", DatabaseState.REACHABLE),
        (180001, b"18.01", DatabaseState.REACHABLE),
    ],
)
def test_a_version_below_14_is_unsupported(
    postgres: PostgresServer, number: int, text: bytes, state: DatabaseState
) -> None:
    real_number = struct.pack("!i", int(postgres.sql("SHOW server_version_num")))
    real_text = postgres.sql("SHOW server_version").encode()

    def older(answer: bytes) -> bytes:
        return answer.replace(real_number, struct.pack("!i", number)).replace(real_text, text.ljust(len(real_text)))

    async def ask() -> Database:
        async with proxy(postgres.port, rewrite=older) as spoiled:
            return await look(replace(good(postgres), port=spoiled.port), NOW)

    database = run(ask())
    assert (database.state, database.version) == (state, text.decode())
    if state is DatabaseState.UNSUPPORTED_VERSION:
        assert database.message.endswith("is version 13.22; brokers need 14 or newer")


# What is not PostgreSQL.


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    "sent", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\xff" * 500, b"S" * 9, b"E"]
)
def test_something_else_at_the_port_is_never_reachable(sent: bytes, tls: bool) -> None:
    database = run(look_at_something_else(raw(sent), tls))
    assert database.state is not DatabaseState.REACHABLE
    assert database.message


def test_an_error_before_tls_is_unknown_and_its_words_are_not_trusted() -> None:
    database = run(look_at_something_else(raw(b"E\x00\x00\x00\x10SFATAL\x00C28P01\x00"), tls=True))
    assert database.state is DatabaseState.UNKNOWN
    assert database.message.endswith("answers the wish for TLS with an error; its log says which")


async def look_at_something_else(handler: Handler, tls: bool) -> Database:
    async with listening(handler) as port:
        connection = Connection("127.0.0.1", port, "queen", "queen", PASSWORD, tls, False, None)
        return await look(connection, NOW, timeout_seconds=10.0)


@pytest.fixture(autouse=True)
def no_session_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test the shared server has no session of ours left."""
    yield
    if "postgres" in request.fixturenames:
        server: PostgresServer = request.getfixturevalue("postgres")
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'queen-operator'"
        for _ in range(500):
            if server.sql(sessions) == "0":
                return
        pytest.fail("a session of the look is still there")
