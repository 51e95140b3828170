"""Which keys of which Secrets the broker pods of a cluster will need."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from queen_operator.api.names import mesh_secret_name
from queen_operator.api.spec import AuthSpec, PostgresSpec, QueenClusterSpec, SecretKey

MESH_SECRET_KEY: Final = "secret"  # noqa: S105  a key's name


class Purpose(StrEnum):
    """What a referenced value is for, in words that fit into a sentence."""

    HOST = "PostgreSQL host"
    PORT = "PostgreSQL port"
    DATABASE = "PostgreSQL database name"
    USER = "PostgreSQL user"
    PASSWORD = "PostgreSQL password"  # noqa: S105  words for people
    CERTIFICATE_AUTHORITY = "certificate authority of PostgreSQL"
    JWT_SECRET = "JWT secret"  # noqa: S105
    JWT_PUBLIC_KEY = "JWT public key"
    ENCRYPTION_KEY = "encryption key"
    MESH_SECRET = "mesh secret"  # noqa: S105


# What a broker needs to reach PostgreSQL; all else in a Secret has nothing to do with a database that is away.
CONNECTION_PURPOSES: Final = frozenset(
    {
        Purpose.HOST,
        Purpose.PORT,
        Purpose.DATABASE,
        Purpose.USER,
        Purpose.PASSWORD,
        Purpose.CERTIFICATE_AUTHORITY,
    }
)


@dataclass(frozen=True, slots=True)
class Reference:
    """One key of a Secret in the cluster's namespace, and what it is for."""

    secret: str
    key: str
    purpose: str


def references(name: str, spec: QueenClusterSpec) -> tuple[Reference, ...]:
    """Return every Secret key that broker pods of cluster ``name`` will need, each purpose once, in a fixed order.

    Only what is in use: a CA without TLS, or a JWT key without authentication, is not needed and so never waited for.
    """
    found = [*_connection(spec.postgres), *_authentication(spec.auth)]
    if spec.encryption is not None:
        found.append(_reference(spec.encryption.key_secret, Purpose.ENCRYPTION_KEY))
    mesh = spec.mesh.secret or SecretKey(name=mesh_secret_name(name), key=MESH_SECRET_KEY)
    found.append(_reference(mesh, Purpose.MESH_SECRET))
    return tuple(found)


def _connection(postgres: PostgresSpec) -> list[Reference]:
    found: list[Reference] = []
    if postgres.credentials_secret is not None:
        keys = {Purpose.DATABASE: "dbname", Purpose.USER: "user", Purpose.PASSWORD: "password"}
        if postgres.host is None:
            keys = {Purpose.HOST: "host", Purpose.PORT: "port"} | keys
        found += [Reference(postgres.credentials_secret.name, key, purpose) for purpose, key in keys.items()]
    elif postgres.password_secret is not None:
        found.append(_reference(postgres.password_secret, Purpose.PASSWORD))
    if postgres.tls.enabled and postgres.tls.ca_secret is not None:
        found.append(_reference(postgres.tls.ca_secret, Purpose.CERTIFICATE_AUTHORITY))
    return found


def _authentication(auth: AuthSpec) -> list[Reference]:
    if not auth.enabled:
        return []
    wanted = ((auth.secret, Purpose.JWT_SECRET), (auth.public_key_secret, Purpose.JWT_PUBLIC_KEY))
    return [_reference(key, purpose) for key, purpose in wanted if key is not None]


def _reference(key: SecretKey, purpose: Purpose) -> Reference:
    return Reference(key.name, key.key, purpose)
