"""The environment of the broker container, in one fixed order: another order would restart the pod.

The broker stops at a boolean that it cannot read, and takes its default for such a number without a word, so both
are always sent in the one spelling that it reads: `true`/`false` and plain digits.
"""

from collections.abc import Iterator
from typing import Any, Final

from queen_operator.api import names
from queen_operator.api.environment_rules import owner_advice
from queen_operator.api.spec import AuthSpec, OnFrozen, QueenClusterSpec
from queen_operator.api.units import duration_ms
from queen_operator.manifests.context import Context
from queen_operator.manifests.memory import cache_ceilings
from queen_operator.manifests.references import Purpose, Reference, references

EnvEntry = dict[str, Any]

# Of the pool, kept out of the write budget. The broker's 16 would leave a pool of 28 too little to write with.
ADMISSION_POOL_RESERVE: Final = 8
# Finer than the broker's 10,000: less to read into memory at once, and less to repeat after a kill in a replay.
EVENTS_PER_FILE: Final = 1000
# Messages that a broker replays in one statement, where repeated pushes are to be expected in its spool. The broker
# takes no notice when PostgreSQL answers that one of them is stored already, and drops all of the statement: measured,
# 907 of 3019 accepted messages lost with the broker's 100, none with 1.
SAFE_REPLAY_BATCH: Final = 1
REPLAY_BATCH: Final = "FILE_BUFFER_MAX_BATCH"
# How long a message of another broker, or a replayed one, may stay unseen without a wake-up. The broker's is 30 s.
RESEED_MS: Final = 5000
# Brokers that peers are told of even when they do not exist: a name too many costs a DNS look-up, one too few costs
# a newcomer its wake-ups until the next restart.
LEAST_PEERS: Final = 3


def broker_environment(context: Context, index: int) -> list[EnvEntry]:
    """Return the env of broker ``index``: the operator's in fixed order, then the user's by name, no name twice.

    The user's value takes the place of ours for settings that only have another default here. A name that is the
    operator's own is refused at admission; where one came in before that rule, it is left out.
    """
    ours = {entry["name"]: entry for entry in _operators(context, index)}
    free = (entry for entry in context.spec.broker.env if owner_advice(entry.name) is None)
    users = {entry.name: _text(entry.name, entry.value) for entry in free}
    return [
        *(ours | {name: users[name] for name in ours if name in users}).values(),
        *(users[name] for name in sorted(users.keys() - ours.keys())),
    ]


def mesh_peers(context: Context, index: int) -> str:
    """Return the other brokers of the mesh as the broker takes them, `host:port` with commas, by index."""
    others = [peer for peer in range(max(LEAST_PEERS, context.spec.replicas)) if peer != index]
    return ",".join(f"{mesh_host(context, peer)}:{names.MESH_PORT}" for peer in others)


def mesh_host(context: Context, index: int) -> str:
    """Return the name by which peers reach a broker, Ready or not: that of its headless Service."""
    return f"{names.broker_name(context.name, index)}.{context.namespace}.svc"


def _operators(context: Context, index: int) -> Iterator[EnvEntry]:
    secrets = {Purpose(reference.purpose): reference for reference in references(context.name, context.spec)}
    yield _number("PORT", names.HTTP_PORT)
    yield _text("QUEEN_BIND_ADDR", "0.0.0.0")  # noqa: S104  the pod's own network; a NetworkPolicy says who may come
    yield from _postgres(context.spec, secrets)
    yield from _engine(context.spec)
    yield from _authentication(context.spec.auth, secrets)
    if Purpose.ENCRYPTION_KEY in secrets:
        yield _secret("QUEEN_ENCRYPTION_KEY", secrets[Purpose.ENCRYPTION_KEY])
    yield from _mesh(context, index, secrets)
    yield from _reports(context.spec)


def _postgres(spec: QueenClusterSpec, secrets: dict[Purpose, Reference]) -> Iterator[EnvEntry]:
    postgres = spec.postgres
    fields = (
        ("PG_HOST", Purpose.HOST, postgres.host),
        ("PG_PORT", Purpose.PORT, str(postgres.port)),
        ("PG_USER", Purpose.USER, postgres.user),
        ("PG_PASSWORD", Purpose.PASSWORD, None),
        ("PG_DATABASE", Purpose.DATABASE, postgres.database),
    )
    for name, purpose, written in fields:
        if purpose in secrets:
            yield _secret(name, secrets[purpose])
        elif written is not None:
            yield _text(name, written)
    yield _boolean("PG_USE_SSL", postgres.tls.enabled)
    yield _boolean("PG_SSL_REJECT_UNAUTHORIZED", postgres.tls.verify or not postgres.tls.enabled)
    if Purpose.CERTIFICATE_AUTHORITY in secrets:
        yield _secret("PG_SSL_ROOT_CERT", secrets[Purpose.CERTIFICATE_AUTHORITY])
    yield _number("DB_POOL_SIZE", postgres.pool_size)
    yield _number("QUEEN_ADMISSION_POOL_RESERVE", ADMISSION_POOL_RESERVE)


def _engine(spec: QueenClusterSpec) -> Iterator[EnvEntry]:
    yield _number("QUEEN_STMT_TIMEOUT_MS", duration_ms(spec.broker.statement_timeout))
    yield _number("DEFAULT_TIMEOUT", duration_ms(spec.broker.pop_timeout))
    yield _boolean("QUEEN_APPLY_SCHEMA", spec.broker.apply_schema)
    yield _text("FILE_BUFFER_DIR", names.SPOOL_DIRECTORY)
    yield _number("FILE_BUFFER_EVENTS_PER_FILE", EVENTS_PER_FILE)
    if spec.postgres.on_frozen is OnFrozen.SPOOL:
        # A push that hung on the frozen database is stored at the thaw, and its client has repeated it into a spool.
        yield _number(REPLAY_BATCH, SAFE_REPLAY_BATCH)
    yield _number("QUEEN_HOTLIST_RESEED_MS", RESEED_MS)
    ceilings = cache_ceilings(spec.resources)
    if ceilings is not None:
        yield _number("QUEEN_DEDUP_CACHE_MB", ceilings.dedup_mib)
        yield _number("QUEEN_ACK_REGISTRY_MB", ceilings.ack_registry_mib)
        yield _number("QUEEN_EPHEMERAL_MAX_BYTES", ceilings.ephemeral_bytes)


def _authentication(auth: AuthSpec, secrets: dict[Purpose, Reference]) -> Iterator[EnvEntry]:
    yield _boolean("JWT_ENABLED", auth.enabled)
    if not auth.enabled:
        return
    yield _text("JWT_ALGORITHM", auth.algorithm.value)
    for name, purpose in (("JWT_SECRET", Purpose.JWT_SECRET), ("JWT_PUBLIC_KEY", Purpose.JWT_PUBLIC_KEY)):
        if purpose in secrets:
            yield _secret(name, secrets[purpose])
    written = (("JWT_JWKS_URL", auth.jwks_url), ("JWT_ISSUER", auth.issuer), ("JWT_AUDIENCE", auth.audience))
    yield from (_text(name, value) for name, value in written if value)


def _mesh(context: Context, index: int, secrets: dict[Purpose, Reference]) -> Iterator[EnvEntry]:
    yield _boolean("QUEEN_SYNC_ENABLED", True)
    yield _secret("QUEEN_SYNC_SECRET", secrets[Purpose.MESH_SECRET])
    yield _number("QUEEN_MESH_PORT", names.MESH_PORT)
    yield _text("QUEEN_MESH_ADVERTISE_HOST", mesh_host(context, index))
    yield _text("QUEEN_MESH_PEERS", mesh_peers(context, index))
    yield _text("QUEEN_SERVER_ID", names.broker_name(context.name, index))


def _reports(spec: QueenClusterSpec) -> Iterator[EnvEntry]:
    broker = spec.broker
    # RUST_LOG, not LOG_LEVEL: an image that sets RUST_LOG itself, blank even, would hide the other one.
    yield _text("RUST_LOG", broker.log_level.value)
    yield _boolean("QUEEN_LOG_JSON", broker.log_json)
    yield _number("STATS_INTERVAL_MS", duration_ms(broker.stats_interval))
    yield _number("METRICS_FLUSH_MS", duration_ms(broker.metrics_flush_interval))
    yield _number("RETENTION_INTERVAL", duration_ms(broker.retention_interval))


def _text(name: str, value: str) -> EnvEntry:
    # Kubernetes replaces $(NAME) in values; with every $ doubled the container gets the text as it was written.
    return {"name": name, "value": value.replace("$", "$$")}


def _number(name: str, value: int) -> EnvEntry:
    return {"name": name, "value": str(value)}


def _boolean(name: str, value: bool) -> EnvEntry:
    return {"name": name, "value": "true" if value else "false"}


def _secret(name: str, reference: Reference) -> EnvEntry:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": reference.secret, "key": reference.key}}}
