"""What no server here can be made to say: rare network errors, other languages, and careless words."""

import errno
import socket

import asyncpg
import pytest

from queen_operator.broker.verdicts import LONGEST_MESSAGE, clean, place_of, verdict_of, verdict_of_lookup
from queen_operator.planning.observed import DatabaseState

PLACE = "db:5432"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ECONNREFUSED, "refuses connections"),
        (errno.EHOSTUNREACH, "no route to the host"),
        (errno.ENETUNREACH, "no route to the network"),
        (errno.EHOSTDOWN, "the host is down"),
        (errno.ECONNRESET, "closes the connection"),
        (errno.EPIPE, "closes the connection"),
    ],
)
def test_a_host_where_nobody_is_is_refused_and_says_how(number: int, words: str) -> None:
    verdict = verdict_of(OSError(number, "whatever the system says"), PLACE)
    assert verdict.state is DatabaseState.REFUSED
    assert words in verdict.message
    assert PLACE in verdict.message


@pytest.mark.parametrize("number", [errno.EPERM, errno.EMFILE, errno.EADDRNOTAVAIL])
def test_trouble_of_our_own_says_nothing_about_the_database(number: int) -> None:
    verdict = verdict_of(OSError(number, "our trouble"), PLACE)
    assert verdict.state is DatabaseState.UNKNOWN
    assert "our trouble" in verdict.message


def test_addresses_that_fail_in_different_ways_are_refused() -> None:
    problem = OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 113] Connect call failed")
    assert verdict_of(problem, PLACE).state is DatabaseState.REFUSED


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (asyncpg.AdminShutdownError, DatabaseState.REFUSED),
        (asyncpg.CrashShutdownError, DatabaseState.REFUSED),
        (asyncpg.CannotConnectNowError, DatabaseState.REFUSED),
        (asyncpg.ReadOnlySQLTransactionError, DatabaseState.READ_ONLY),
        (asyncpg.TooManyConnectionsError, DatabaseState.TOO_MANY_CONNECTIONS),
        (asyncpg.InvalidPasswordError, DatabaseState.REJECTED),
        (asyncpg.QueryCanceledError, DatabaseState.UNKNOWN),
        (asyncpg.OutOfMemoryError, DatabaseState.UNKNOWN),
    ],
)
def test_a_server_is_understood_in_any_language(error: type[asyncpg.PostgresError], state: DatabaseState) -> None:
    verdict = verdict_of(error("Passwort-Authentifizierung für Benutzer fehlgeschlagen"), PLACE)
    assert verdict.state is state
    assert verdict.message == f"PostgreSQL at {PLACE} says: Passwort-Authentifizierung für Benutzer fehlgeschlagen"


def test_anything_else_is_unknown_with_its_words() -> None:
    assert verdict_of(RuntimeError("odd"), PLACE).message == f"PostgreSQL at {PLACE} cannot be asked: odd"
    assert verdict_of(RuntimeError(), PLACE).message.endswith(": RuntimeError")


@pytest.mark.parametrize("number", [socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_MEMORY])
def test_a_look_up_that_failed_is_no_missing_host(number: int) -> None:
    assert verdict_of_lookup(socket.gaierror(number, "words"), "db").state is DatabaseState.UNKNOWN


@pytest.mark.parametrize("number", [socket.EAI_NONAME, socket.EAI_NODATA])
def test_a_name_without_an_address_is_a_missing_host(number: int) -> None:
    assert verdict_of_lookup(socket.gaierror(number, "words"), "db").state is DatabaseState.REFUSED


def test_a_message_is_one_printable_line_without_secrets() -> None:
    dirty = "a\n\tb\x1b[31m postgres://u:p@h/d and postgresql://u@h the-secret\x00 end"
    assert clean(dirty, "the-secret") == "a b [31m *** and *** *** end"


def test_a_secret_of_a_few_letters_does_not_spoil_the_sentence() -> None:
    assert clean("no such database", "a", "") == "no such database"


def test_an_endless_message_is_cut() -> None:
    assert len(clean("word " * 1000)) == LONGEST_MESSAGE


def test_an_ipv6_address_gets_brackets() -> None:
    assert (place_of("fd00::1", 5432), place_of("db", 5432)) == ("[fd00::1]:5432", "db:5432")
