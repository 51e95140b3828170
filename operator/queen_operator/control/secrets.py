"""Resolves the Secret keys that a spec refers to, into digests and sentences; values stay in this process."""

import asyncio
import base64
import hashlib
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from queen_operator.api.spec import QueenClusterSpec
from queen_operator.broker.database import Connection
from queen_operator.cluster.client import Api, NotFound
from queen_operator.cluster.kinds import SECRET
from queen_operator.cluster.store import Store
from queen_operator.control.memory import Memory, SecretContent
from queen_operator.manifests.references import Purpose, Reference
from queen_operator.planning.observed import ReferencedKey

RESOLVE_SECONDS: Final = 3.0
_HEX_KEY: Final = re.compile(rb"[0-9a-fA-F]{64}")


async def read_secrets(
    api: Api, store: Store, memory: Memory, namespace: str, cluster: str, wanted: tuple[Reference, ...]
) -> None:
    """Read the referenced Secrets that changed or were never read; the others are known from before."""
    needed: dict[str, set[str]] = {}
    for reference in wanted:
        needed.setdefault(reference.secret, set()).add(reference.key)
    # Interest first: a change between our read and the next watch event would otherwise go unseen.
    store.refer(namespace, cluster, needed)
    stale = store.take_stale(namespace, cluster)
    for name in set(memory.secrets) - set(needed):
        del memory.secrets[name]
    due = [name for name, keys in needed.items() if name in stale or not keys <= _asked(memory, name)]
    salt = str(memory.resource["metadata"]["uid"]).encode()
    for position, name in enumerate(due):
        try:
            memory.secrets[name] = await _read(api, namespace, name, frozenset(needed[name]), salt)
        except Exception:
            store.mark_stale(namespace, cluster, due[position:])
            raise


def _asked(memory: Memory, name: str) -> frozenset[str]:
    content = memory.secrets.get(name)
    return content.asked if content is not None else frozenset()


async def _read(api: Api, namespace: str, name: str, keys: frozenset[str], salt: bytes) -> SecretContent:
    try:
        data = (await api.get(SECRET, namespace, name)).get("data") or {}
    except NotFound:
        return SecretContent(keys, missing=True)
    values = {key: base64.b64decode(data[key]) for key in keys if key in data}
    digests = {key: _digest(value, salt) for key, value in values.items() if value}
    return SecretContent(keys, values, digests)


def _digest(value: bytes, salt: bytes) -> str:
    """A digest that ends up, shortened, on pod templates: slow and salted, so that no password is guessed from it."""
    return hashlib.scrypt(value, salt=salt, n=2**13, r=8, p=1, dklen=32).hex()


def resolve(memory: Memory, wanted: tuple[Reference, ...], generated_mesh_secret: str) -> tuple[ReferencedKey, ...]:
    """Return every referenced key with its digest, or with the sentence that says what is missing or wrong.

    The mesh Secret that the operator generates is no problem while it is missing: making it is the next action.
    """
    return tuple(_resolve(memory, reference, generated_mesh_secret) for reference in wanted)


def _resolve(memory: Memory, reference: Reference, generated_mesh_secret: str) -> ReferencedKey:
    content = memory.secrets.get(reference.secret)
    named = (reference.secret, reference.key, reference.purpose)
    if content is None or content.missing:
        if reference.secret == generated_mesh_secret:
            return ReferencedKey(*named)
        return ReferencedKey(
            *named,
            problem=f"The Secret {reference.secret} with the {reference.purpose} (key {reference.key}) does not exist;"
            " it is taken up by itself when it appears.",
        )
    value = content.values.get(reference.key)
    if not value:
        state = "is empty" if value is not None else "is missing"
        return ReferencedKey(
            *named,
            problem=f"The key {reference.key} of the Secret {reference.secret} ({reference.purpose}) {state};"
            " it is taken up by itself when it appears.",
        )
    # Where the database is is no secret, and must be recognized again by a cluster that is made anew.
    plain = hashlib.sha256(value).hexdigest() if reference.purpose in _NO_SECRETS else None
    digest = plain or content.digests[reference.key]
    check = _CHECKS.get(reference.purpose)
    problem = check(value) if check is not None else None
    if problem is not None:
        problem = f"The key {reference.key} of the Secret {reference.secret} ({reference.purpose}) {problem}"
    return ReferencedKey(*named, digest=digest, problem=problem)


def _encryption_key(value: bytes) -> str | None:
    """The broker takes a malformed key as no key and stores plaintext, with one line in its log."""
    if _HEX_KEY.fullmatch(value):
        return None
    if _HEX_KEY.fullmatch(value.strip()):
        return "ends in a newline or a blank; the broker would take it as no key and store plaintext."
    return f"is not 64 hexadecimal digits (it has {len(value)} characters); the broker would store plaintext."


def _port(value: bytes) -> str | None:
    """The broker takes what is no number for its default, and so would connect elsewhere."""
    return None if value.isdigit() else "is not a plain number, such as 5432; look for a newline at its end."


_NO_SECRETS: Final = frozenset({Purpose.HOST, Purpose.PORT, Purpose.DATABASE})
_CHECKS: Mapping[str, Callable[[bytes], str | None]] = {
    Purpose.ENCRYPTION_KEY: _encryption_key,
    Purpose.PORT: _port,
}


def connection(memory: Memory, name: str, spec: QueenClusterSpec) -> Connection | None:
    """The connection that the brokers use, for the operator's own look; None while a part of it is missing."""
    postgres = spec.postgres
    tls = postgres.tls
    ca_pem = _text(memory, tls.ca_secret.name, tls.ca_secret.key) if tls.ca_secret is not None else None
    if postgres.credentials_secret is not None:
        secret = postgres.credentials_secret.name
        host = postgres.host or _text(memory, secret, "host")
        port = str(postgres.port) if postgres.host else _text(memory, secret, "port") or str(postgres.port)
        database, user = _text(memory, secret, "dbname"), _text(memory, secret, "user")
        password = _text(memory, secret, "password")
    else:
        host, port, database, user = postgres.host, str(postgres.port), postgres.database, postgres.user
        key = postgres.password_secret
        password = _text(memory, key.name, key.key) if key is not None else None
    if not (host and database and user and password) or not port.isdigit():
        return None
    return Connection(host, int(port), database, user, password, tls.enabled, tls.verify, ca_pem)


async def as_brokers_see_it(found: Connection, namespace: str) -> Connection:
    """Give a host without dots the namespace of the brokers: the operator's own pod would look it up in its own."""
    if "." in found.host or ":" in found.host:
        return found
    qualified = f"{found.host}.{namespace}.svc"
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            await asyncio.get_running_loop().getaddrinfo(qualified, found.port)
    except socket.gaierror as error:
        if error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            return found  # no Service of that namespace: whatever else the name means, it means everywhere
    except (OSError, UnicodeError):
        pass  # the name server is silent: the look itself will say so, and not that the host does not exist
    return replace(found, host=qualified)


def token_reference(spec: QueenClusterSpec) -> tuple[Reference, ...]:
    """The key with the operator's own token: read like the others, but no broker needs it or restarts for it."""
    key = spec.auth.admin_token_secret
    return (Reference(key.name, key.key, "admin token"),) if spec.auth.enabled and key is not None else ()


def admin_token(memory: Memory, spec: QueenClusterSpec) -> str | None:
    """The operator's token for the brokers, None when there is none or none is needed."""
    found = token_reference(spec)
    return _text(memory, found[0].secret, found[0].key) if found else None


def _text(memory: Memory, secret: str, key: str) -> str | None:
    content = memory.secrets.get(secret)
    value = content.values.get(key) if content is not None else None
    return value.decode(errors="replace") if value else None
