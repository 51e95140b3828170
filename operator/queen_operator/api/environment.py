"""What is known about the broker's environment variables: tables, no decisions.

The broker exits on a boolean that it cannot read, and takes its default without a word for a number that it cannot
read; some variables do nothing, some belong to the operator. ``environment_rules.py`` makes refusals of these tables.
Source: the broker's own parsing (``config.rs`` and the few variables read elsewhere) in 1.3.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Variables that the operator sets or that must stay unset, with what to do instead.
OWNED: Final[Mapping[str, str]] = {
    "PORT": "brokers always listen on 6632",
    "QUEEN_BIND_ADDR": "brokers listen on every address of their pod",
    "DB_POOL_SIZE": "use spec.postgres.poolSize",
    "QUEEN_ADMISSION_POOL_RESERVE": "it is set to fit spec.postgres.poolSize",
    "QUEEN_STMT_TIMEOUT_MS": "use spec.broker.statementTimeout",
    "DEFAULT_TIMEOUT": "use spec.broker.popTimeout",
    "POP_DEFAULT_TIMEOUT_MS": "use spec.broker.popTimeout",
    "FILE_BUFFER_DIR": "the spool is always on the volume of spec.spool",
    "TMPDIR": "a spool outside of its volume would be lost with the pod",
    "QUEEN_APPLY_SCHEMA": "use spec.broker.applySchema",
    "QUEEN_ENCRYPTION_KEY": "use spec.encryption.keySecret",
    "JWT_ENABLED": "use spec.auth.enabled",
    "JWT_ALGORITHM": "use spec.auth.algorithm",
    "JWT_SECRET": "use spec.auth.secret",
    "JWT_PUBLIC_KEY": "use spec.auth.publicKeySecret",
    "JWT_JWKS_URL": "use spec.auth.jwksUrl",
    "JWT_ISSUER": "use spec.auth.issuer",
    "JWT_AUDIENCE": "use spec.auth.audience",
    "QUEEN_SYNC_ENABLED": "the mesh is always on",
    "QUEEN_SYNC_SECRET": "use spec.mesh.secret",
    "QUEEN_SERVER_ID": "each broker has the name of its Deployment",
    "HOSTNAME": "each broker has the name of its Deployment",
    "RUST_LOG": "use spec.broker.logLevel",
    "LOG_LEVEL": "use spec.broker.logLevel",
    "QUEEN_LOG_JSON": "use spec.broker.logJson",
    "STATS_INTERVAL_MS": "use spec.broker.statsInterval",
    "METRICS_FLUSH_MS": "use spec.broker.metricsFlushInterval",
    "RETENTION_INTERVAL": "use spec.broker.retentionInterval",
}

# The same for whole families.
OWNED_PREFIXES: Final[Mapping[str, str]] = {
    "PG_": "use the fields of spec.postgres",
    "QUEEN_MESH_": "the mesh is made from spec.replicas and spec.mesh",
    "QUEEN_UDP_": "the mesh is made from spec.replicas and spec.mesh",
}

# Variables that the broker prints, ignores with a warning or does not know any more.
WITHOUT_EFFECT: Final = ("QUEEN_KV_POOL_SIZE", "NUM_WORKERS", "SIDECAR_POOL_SIZE", "WORKER_ID", "QUEEN_STATIC_DIR")
WITHOUT_EFFECT_PREFIXES: Final = ("QUEEN_SEG_PUSH_", "QUEEN_SEG_POP_", "QUEEN_VEGAS_")

# The broker exits on anything but these words, in any case; empty is its default, which is better said by no entry.
BOOLEAN_PATTERN: Final = r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE]|[yY][eE][sS]|[nN][oO]|[oO][nN]|[oO][fF][fF]|1|0)$"
BOOLEANS: Final = (
    "QUEEN_ACK_FUSION",
    "QUEEN_ACK_REGISTRY",
    "QUEEN_ADMISSION_TRACE",
    "QUEEN_DEDUP_CACHE",
    "QUEEN_EPHEMERAL_REQUIRE_GRANT",
    "QUEEN_HOTLIST",
    "QUEEN_KV_REQUIRE_GRANT",
    "QUEEN_KV_TRUSTED_PROXY",
    "QUEEN_PARTITION_CLEANUP_ENABLED",
    "QUEEN_POP_FUSION",
    "QUEEN_POP_PENDING_GATE",
    "QUEEN_SWEEPER",
    "QUEEN_SWEEPER_ISOLATE_ON_PERMANENT",
    "QUEEN_TENANCY_HEADER",
    "QUEEN_V2_BUNDLE_LOG",
)

# The broker exits when the first is on without the second.
TENANCY: Final = "QUEEN_TENANCY_HEADER"
TENANCY_NEEDS: Final = "QUEEN_KV_TRUSTED_PROXY"
TRUE_PATTERN: Final = r"^([tT][rR][uU][eE]|[yY][eE][sS]|[oO][nN]|1)$"

WHOLE_NUMBER_PATTERN: Final = r"^(0|[1-9][0-9]{0,14})$"
DECIMAL_PATTERN: Final = r"^(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$"


@dataclass(frozen=True, slots=True)
class Range:
    """Variables that are numbers of one range: outside of it the broker clamps, wraps around or exits."""

    low: int
    high: int
    names: tuple[str, ...]


_INT32: Final = 2_147_483_647
_TIB: Final = 1024**4
_YEAR_MS: Final = 365 * 24 * 3_600_000

WHOLE_NUMBERS: Final = (
    Range(
        0,
        _INT32,
        (
            "JWT_CLOCK_SKEW",
            "POP_WAIT_BACKOFF_THRESHOLD",
            "QUEEN_EPHEMERAL_IMPLICIT_IDLE_S",
            "QUEEN_HOTLIST_IDLE_SWEEP_MS",
            "QUEEN_HOTLIST_PAD_MS",
            "QUEEN_HOTLIST_RESEED_FULL_MS",
            "QUEEN_HOTLIST_RESEED_WINDOW_MS",
            "QUEEN_HOTLIST_UNSERVED_TRIM_MS",
            "QUEEN_KV_CELL_RATE",
            "QUEEN_POP_AUTOPILOT_MAX_LANES",
            "QUEEN_V2_FUSION_MIN_FRAMES",
            "QUEEN_V2_FUSION_MIN_WAIT_MS",
        ),
    ),
    Range(
        1,
        _INT32,
        (
            "FILE_BUFFER_EVENTS_PER_FILE",
            "FILE_BUFFER_FLUSH_MS",
            "FILE_BUFFER_MAX_BATCH",
            "JWT_JWKS_REFRESH_INTERVAL",
            "JWT_JWKS_TIMEOUT_MS",
            "METRICS_RETENTION_DAYS",
            "PARTITION_CLEANUP_DAYS",
            "POP_WAIT_INITIAL_INTERVAL_MS",
            "POP_WAIT_MAX_INTERVAL_MS",
            "QUEEN_ACK_FUSION_HOLD_MS",
            "QUEEN_ACK_FUSION_SHARDS",
            "QUEEN_ACK_REGISTRY_MB",
            "QUEEN_ADMISSION_INIT",
            "QUEEN_ADMISSION_MAX",
            "QUEEN_ADMISSION_MIN",
            "QUEEN_ADMISSION_NOSYNC_BUDGET",
            "QUEEN_CACHE_REFRESH_INTERVAL_MS",
            "QUEEN_DEDUP_CACHE_MB",
            "QUEEN_EPHEMERAL_BURST",
            "QUEEN_EPHEMERAL_QUEUE_MAX_LENGTH",
            "QUEEN_EPHEMERAL_RATE",
            "QUEEN_HOTLIST_RESEED_MS",
            "QUEEN_HOTLIST_SHARDS",
            "QUEEN_HOTLIST_WINDOW_BATCH",
            "QUEEN_KV_EXPIRE_BATCH",
            "QUEEN_KV_EXPIRE_EVERY_MS",
            "QUEEN_KV_MAX_KEYS_PER_CALL",
            "QUEEN_KV_MAX_KEY_BYTES",
            "QUEEN_KV_MAX_OPS_PER_CALL",
            "QUEEN_KV_MAX_TENANTS",
            "QUEEN_KV_PREFIX_LIMIT",
            "QUEEN_KV_READ_BURST",
            "QUEEN_KV_READ_RATE",
            "QUEEN_KV_STANDALONE_SHED_AFTER",
            "QUEEN_KV_WRITE_BURST",
            "QUEEN_KV_WRITE_RATE",
            "QUEEN_LOG_TOPN_QUEUES",
            "QUEEN_POP_AUTOPILOT_DWELL_MS",
            "QUEEN_POP_AUTOPILOT_DWELL_POPS",
            "QUEEN_POP_FUSION_CONCURRENCY",
            "QUEEN_POP_FUSION_HOLD_MS",
            "QUEEN_POP_FUSION_MAX_JOBS",
            "QUEEN_POP_FUSION_SHARDS",
            "QUEEN_SWEEPER_BACKOFF_MAX_MS",
            "QUEEN_SWEEPER_BACKOFF_MIN_MS",
            "QUEEN_SWEEPER_CLAIM_BATCH",
            "QUEEN_SWEEPER_CYCLE_MAX_ROWS",
            "QUEEN_SWEEPER_DUE_CAP",
            "QUEEN_SWEEPER_EMPTY_CLAIM_MAX_MS",
            "QUEEN_SWEEPER_EMPTY_CLAIM_MIN_MS",
            "QUEEN_SWEEPER_FIRE_RATE_PER_TENANT",
            "QUEEN_SWEEPER_IDLE_AFTER_CYCLES",
            "QUEEN_SWEEPER_IDLE_MAX_SLEEP_MS",
            "QUEEN_SWEEPER_LEASE_MS",
            "QUEEN_SWEEPER_MAX_ATTEMPTS",
            "QUEEN_SWEEPER_MAX_SLEEP_MS",
            "QUEEN_SWEEPER_MIN_SLEEP_MS",
            "QUEEN_SWEEPER_TRANSIENT_BACKOFF_MS",
            "QUEEN_SYNC_DEAD_THRESHOLD_MS",
            "QUEEN_SYNC_HEARTBEAT_MS",
            "QUEEN_TIMERS_MAX_HORIZON_S",
            "QUEEN_TIMERS_MAX_OPS_PER_CALL",
            "QUEEN_V2_BUNDLE_MAX",
            "QUEEN_V2_FUSION_FRAMES",
            "QUEEN_V2_FUSION_HOLD_MS",
            "QUEEN_V2_FUSION_MAX_INFLIGHT",
            "QUEEN_V2_FUSION_SHARDS",
            "RETENTION_BATCH_SIZE",
        ),
    ),
    Range(
        1,
        _TIB,
        (
            "QUEEN_EPHEMERAL_MAX_BYTES",
            "QUEEN_EPHEMERAL_QUEUE_MAX_BYTES",
            "QUEEN_KV_MAX_READ_BYTES",
            "QUEEN_KV_MAX_VALUE_BYTES",
            "QUEEN_MAX_BODY_BYTES",
            "QUEEN_SWEEPER_MAX_FIRE_BYTES",
            "QUEEN_TIMERS_MAX_PAYLOAD_BYTES",
        ),
    ),
    Range(
        1000,
        _INT32,
        (
            "QUEEN_KV_QUOTA_REFRESH_MS",
            "QUEEN_KV_USAGE_EVERY_MS",
            "QUEEN_LOG_RATES_MS",
            "RETAINED_BYTES_INTERVAL_MS",
        ),
    ),
    Range(50, _INT32, ("QUEEN_ADMISSION_TRAIN_GAP_US",)),
    Range(100, _INT32, ("QUEEN_ADMISSION_TICK_MS",)),
    Range(1, 22, ("QUEEN_V2_ZSTD_LEVEL",)),
    Range(1, 10_000, ("QUEEN_POP_AUTOPILOT_BATCH",)),
    Range(0, 64, ("QUEEN_POP_AUTOPILOT_BURST_CAP",)),
    Range(0, 1_000_000, ("QUEEN_RETENTION_DUE_CAP",)),
    Range(0, _YEAR_MS, ("QUEEN_RETENTION_SAFETY_WALK_MS",)),
    Range(1, 16, ("RETENTION_PARALLELISM",)),
    Range(1, 8, ("QUEEN_SWEEPER_PARALLELISM",)),
    Range(1, 99, ("QUEEN_KV_QUOTA_RELEASE_PERCENT",)),
    Range(1, 100, ("QUEEN_KV_QUOTA_HOT_PERCENT",)),
    Range(1, 86_400, ("QUEEN_EPHEMERAL_LEASE_S",)),
    Range(1, 1000, ("QUEEN_EPHEMERAL_RETRY_LIMIT",)),
)

DECIMALS: Final = (
    Range(
        0,
        1,
        (
            "QUEEN_ADMISSION_SHARE_ACK",
            "QUEEN_ADMISSION_SHARE_MAINT",
            "QUEEN_ADMISSION_SHARE_POP",
            "QUEEN_ADMISSION_SHARE_PUSH",
        ),
    ),
    Range(1, 1_000_000, ("POP_WAIT_BACKOFF_MULTIPLIER", "QUEEN_POP_AUTOPILOT_TARGET_AGE_MS")),
)

# At another word the broker exits (autopilot) or silently takes "all" (subscription mode).
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "DEFAULT_SUBSCRIPTION_MODE": ("all", "new"),
    "QUEEN_POP_AUTOPILOT": ("off", "on", "shadow"),
}

# Set but empty they stay empty: a token with an empty role would be an administrator's.
NEVER_EMPTY: Final = (
    "JWT_ROLES_ARRAY_CLAIM",
    "JWT_ROLES_CLAIM",
    "JWT_ROLE_ADMIN",
    "JWT_ROLE_READ_ONLY",
    "JWT_ROLE_READ_WRITE",
    "JWT_ROLE_WRITE_ONLY",
)

# A list of paths. One that ends in "/" and is longer than "/" would open everything below it: "/api/" the whole API.
SKIP_PATHS: Final = "JWT_SKIP_PATHS"
_SKIP_PATH: Final = r"/([!-+\--~]*[!-+\--.0-~])?"
SKIP_PATHS_PATTERN: Final = rf"^({_SKIP_PATH}(, *{_SKIP_PATH})*)?$"
