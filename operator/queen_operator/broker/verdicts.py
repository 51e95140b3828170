"""What a failed look at PostgreSQL means: the driver's and PostgreSQL's errors, told apart, in one sentence each.

Decided by SQLSTATE, error number and type. PostgreSQL's own words are only repeated, never read: a server may speak
another language.
"""

import errno
import re
import socket
import ssl
from dataclasses import dataclass
from typing import Final

import asyncpg

from queen_operator.planning.observed import DatabaseState

LONGEST_MESSAGE: Final = 400

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_STATE_OF_CODE: Final = {
    "28000": DatabaseState.REJECTED,  # no such role, role may not log in, pg_hba.conf has no entry, certificate missing
    "28P01": DatabaseState.REJECTED,  # wrong password
    "3D000": DatabaseState.REJECTED,  # no such database
    "42501": DatabaseState.REJECTED,  # no CONNECT privilege
    "55000": DatabaseState.REJECTED,  # the database takes no connections
    "53300": DatabaseState.TOO_MANY_CONNECTIONS,  # of the server, the database or the role
    "57P01": DatabaseState.REFUSED,  # shut down by an administrator while it was asked
    "57P02": DatabaseState.REFUSED,  # a crash of another server process
    "57P03": DatabaseState.REFUSED,  # starting up, shutting down, in recovery without hot standby
    "25006": DatabaseState.READ_ONLY,
}
_NOBODY_THERE: Final = {
    errno.ECONNREFUSED: "refuses connections",
    errno.EHOSTUNREACH: "cannot be reached: no route to the host",
    errno.ENETUNREACH: "cannot be reached: no route to the network",
    errno.EHOSTDOWN: "cannot be reached: the host is down",
    errno.ENOENT: "refuses connections: there is no such socket",
}
_NO_SUCH_NAME: Final = (socket.EAI_NONAME, socket.EAI_NODATA)
_HUNG_UP: Final = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state and its sentence."""

    state: DatabaseState
    message: str


def place_of(host: str, port: int) -> str:
    """Return ``host:port`` for a sentence, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def verdict_of(problem: Exception, place: str) -> Verdict:
    """Say what ``problem``, raised while PostgreSQL at ``place`` was asked, means.

    A server that hangs up without a word counts as one that refuses: a broker's push fails at once and is spooled.
    """
    if isinstance(problem, asyncpg.ConnectionDoesNotExistError):
        return _hung_up(place)
    if isinstance(problem, asyncpg.PostgresError):
        return _verdict_of_postgres(problem, place)
    if isinstance(problem, ssl.SSLError):
        return _verdict_of_tls(problem, place)
    if isinstance(problem, OSError):
        return _verdict_of_network(problem, place)
    return Verdict(DatabaseState.UNKNOWN, f"PostgreSQL at {place} cannot be asked: {_words(problem)}")


def verdict_of_lookup(problem: Exception, host: str) -> Verdict:
    """Say what a failed look-up of ``host`` means.

    A name that does not exist is a server nobody reaches. A name server without an answer says nothing about
    PostgreSQL: the brokers may have been luckier.
    """
    if isinstance(problem, UnicodeError):
        return Verdict(DatabaseState.REFUSED, f"PostgreSQL's host {host} is not a possible host name")
    if isinstance(problem, socket.gaierror) and problem.errno in _NO_SUCH_NAME:
        return Verdict(DatabaseState.REFUSED, f"PostgreSQL's host {host} does not exist: the name is not known")
    why = (
        "no answer in time" if isinstance(problem, TimeoutError) else getattr(problem, "strerror", None) or str(problem)
    )
    return Verdict(DatabaseState.UNKNOWN, f"the name of PostgreSQL's host {host} could not be looked up: {why}")


def clean(message: str, *secrets: str) -> str:
    """Return ``message`` on one line, printable, of bearable length and without ``secrets`` and connection strings."""
    text = re.sub(r"\bpostgres(?:ql)?://\S+", "***", message)
    for secret in secrets:
        if len(secret) >= 4:  # shorter ones are part of ordinary words, and then give nothing away
            text = text.replace(secret, "***")
    text = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."


def _verdict_of_postgres(problem: asyncpg.PostgresError, place: str) -> Verdict:
    state = _STATE_OF_CODE.get(problem.sqlstate or "", DatabaseState.UNKNOWN)
    detail = f" ({problem.detail.rstrip('.')})" if problem.detail else ""
    return Verdict(state, f"PostgreSQL at {place} says: {_words(problem)}{detail}")


def _verdict_of_tls(problem: ssl.SSLError, place: str) -> Verdict:
    if isinstance(problem, ssl.SSLCertVerificationError):
        why = problem.verify_message.rstrip(".")
        return Verdict(DatabaseState.REJECTED, f"the certificate of PostgreSQL at {place} is not trusted: {why}")
    why = (problem.reason or _words(problem)).replace("_", " ").lower()
    return Verdict(DatabaseState.REJECTED, f"TLS with PostgreSQL at {place} failed: {why}")


def _verdict_of_network(problem: OSError, place: str) -> Verdict:
    text = str(problem)
    if problem.errno in _NOBODY_THERE:
        return Verdict(DatabaseState.REFUSED, f"PostgreSQL at {place} {_NOBODY_THERE[problem.errno]}")
    if problem.errno is None and "rejected SSL upgrade" in text:
        return Verdict(DatabaseState.REJECTED, f"PostgreSQL at {place} does not offer TLS, which postgres.tls demands")
    if problem.errno is None and "error response during SSL exchange" in text:  # nothing in it can be trusted
        why = "answers the wish for TLS with an error; its log says which"
        return Verdict(DatabaseState.UNKNOWN, f"PostgreSQL at {place} {why}")
    if problem.errno in _HUNG_UP or (problem.errno is None and isinstance(problem, ConnectionError)):
        return _hung_up(place)
    if text.startswith("Multiple exceptions"):  # asyncio's, when each address of a name fails in its own way
        return Verdict(DatabaseState.REFUSED, f"PostgreSQL at {place} refuses connections on each of its addresses")
    return Verdict(DatabaseState.UNKNOWN, f"PostgreSQL at {place} cannot be asked: {_words(problem)}")


def _hung_up(place: str) -> Verdict:
    return Verdict(DatabaseState.REFUSED, f"PostgreSQL at {place} closes the connection without a proper answer")


def _words(problem: Exception) -> str:
    """Return the error's own words; PostgreSQL's without its hints, which are for its administrator."""
    return str(getattr(problem, "message", None) or "") or str(problem) or type(problem).__name__
