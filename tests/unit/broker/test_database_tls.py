"""TLS to PostgreSQL as the broker does it, on a real server with a CA of our own."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from queen_operator.broker.database import Connection, look
from queen_operator.planning.observed import Database, DatabaseState
from tests.unit.broker.loops import NOW, run
from tests.unit.broker.postgres_server import ADMIN, ADMIN_PASSWORD, PostgresServer, certificate_settings
from tests.unit.broker.proxies import proxy


def good(server: PostgresServer, certificates: Path) -> Connection:
    ca = (certificates / "ca.pem").read_text()
    return Connection("localhost", server.port, "postgres", ADMIN, ADMIN_PASSWORD, tls=True, verify=True, ca_pem=ca)


def seen(connection: Connection) -> tuple[DatabaseState, str]:
    database = run(look(connection, NOW, timeout_seconds=10.0))
    assert connection.password not in database.message
    return database.state, database.message


def test_the_right_ca_is_reachable_over_tls(tls_postgres: PostgresServer, certificates: Path) -> None:
    tls_postgres.sql("GRANT ALL ON DATABASE postgres TO tls_only")
    connection = replace(good(tls_postgres, certificates), user="tls_only", password="a-good-secret")
    assert seen(connection) == (DatabaseState.REACHABLE, "")


def test_a_ca_on_one_line_is_read_as_the_broker_reads_it(tls_postgres: PostgresServer, certificates: Path) -> None:
    connection = good(tls_postgres, certificates)
    assert connection.ca_pem is not None
    one_line = replace(connection, ca_pem=connection.ca_pem.replace("\n", "\\n"))
    assert seen(one_line) == (DatabaseState.REACHABLE, "")


@pytest.mark.parametrize("verify", [True, False])
def test_a_wrong_ca_is_rejected_whatever_verify_says(
    tls_postgres: PostgresServer, certificates: Path, verify: bool
) -> None:
    wrong = replace(good(tls_postgres, certificates), ca_pem=(certificates / "stranger.pem").read_text(), verify=verify)
    state, message = seen(wrong)
    assert state is DatabaseState.REJECTED
    assert message.startswith(f"the certificate of PostgreSQL at localhost:{tls_postgres.port} is not trusted: ")


def test_a_private_ca_is_not_trusted_without_being_given(tls_postgres: PostgresServer, certificates: Path) -> None:
    state, message = seen(replace(good(tls_postgres, certificates), ca_pem=None))
    assert state is DatabaseState.REJECTED
    assert "is not trusted" in message


def test_without_verification_any_certificate_will_do(tls_postgres: PostgresServer, certificates: Path) -> None:
    connection = replace(good(tls_postgres, certificates), ca_pem=None, verify=False, host="127.0.0.1")
    assert seen(connection) == (DatabaseState.REACHABLE, "")


def test_another_host_name_is_rejected(tls_postgres: PostgresServer, certificates: Path) -> None:
    state, message = seen(replace(good(tls_postgres, certificates), host="127.0.0.1"))
    assert state is DatabaseState.REJECTED
    assert message.endswith("IP address mismatch, certificate is not valid for '127.0.0.1'")


def test_a_certificate_with_nothing_but_a_common_name_is_rejected(
    own_postgres: PostgresServer, certificates: Path
) -> None:
    own_postgres.settings |= {"ssl": "on", **certificate_settings(certificates, "nameless")}
    own_postgres.start()
    state, message = seen(good(own_postgres, certificates))
    assert state is DatabaseState.REJECTED
    assert "not valid for 'localhost'" in message


def test_a_server_without_tls_is_rejected_when_tls_is_wanted(postgres: PostgresServer, certificates: Path) -> None:
    assert seen(good(postgres, certificates)) == (
        DatabaseState.REJECTED,
        f"PostgreSQL at localhost:{postgres.port} does not offer TLS, which postgres.tls demands",
    )


def test_a_server_that_demands_tls_rejects_a_connection_without(
    tls_postgres: PostgresServer, certificates: Path
) -> None:
    connection = replace(good(tls_postgres, certificates), tls=False, host="127.0.0.1", user="tls_only")
    state, message = seen(connection)
    assert state is DatabaseState.REJECTED
    assert "no encryption" in message or "pg_hba.conf" in message


@pytest.mark.parametrize("pem", ["", " \n", "not a certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_ca_that_is_none_is_rejected_and_the_public_ones_are_not_taken_instead(
    tls_postgres: PostgresServer, certificates: Path, pem: str
) -> None:
    state, message = seen(replace(good(tls_postgres, certificates), ca_pem=pem, verify=False))
    assert state is DatabaseState.REJECTED
    assert message == "the CA certificates given for PostgreSQL are not PEM certificates"


def test_a_frozen_server_is_frozen_over_tls_too(tls_postgres: PostgresServer, certificates: Path) -> None:
    with tls_postgres.frozen():
        database = run(look(good(tls_postgres, certificates), NOW, timeout_seconds=0.5))
    assert database.state is DatabaseState.FROZEN


@pytest.mark.parametrize("answers", [1, 2, 3, 4, 5])
def test_a_server_that_freezes_half_way_is_frozen_over_tls_too(
    tls_postgres: PostgresServer, certificates: Path, answers: int
) -> None:
    def after(count: int) -> Callable[[bytes], bool]:
        seen_so_far = itertools.count(1)
        return lambda _: next(seen_so_far) == count

    async def ask() -> Database:
        async with proxy(tls_postgres.port, freeze_when=after(answers)) as spoiled:
            connection = replace(good(tls_postgres, certificates), port=spoiled.port)
            return await look(connection, NOW, timeout_seconds=1.0)

    assert run(ask()).state is DatabaseState.FROZEN
