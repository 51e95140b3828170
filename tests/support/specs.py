"""Good and bad QueenClusters, one table for the offline check and for the API server: both must say the same."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

Spec = dict[str, Any]

_NAME_FORM = (
    "metadata.name: a cluster's name starts with a letter and has only small letters, digits and hyphens, no dots:"
    " names of Services are made from it"
)
_NAME_LENGTH = "metadata.name: a cluster's name has at most 40 characters: names of pods are made from it"
_NAME_TAKEN = (
    "metadata.name: a cluster's name does not end in a hyphen and a number, in -push or in -mesh:"
    " the cluster with the shorter name owns such names"
)
_ONE_SECRET = "spec.postgres: give exactly one of passwordSecret and credentialsSecret"
_NO_HOST = "spec.postgres.host: give the host, or a credentialsSecret that has it"
_KEY_OF_ALGORITHM = (
    "spec.auth: enabled needs the key of its algorithm: secret for HS256, HS384 and HS512, publicKeySecret or jwksUrl"
    " for RS256, RS384, RS512 and EdDSA, any of them for auto; with another key every token is an error"
)
_TOO_LONG_CALL = (
    "spec.broker.maxPopTimeout: the longer of popTimeout and maxPopTimeout, plus statementTimeout, is at most 1h:"
    " a broker takes that long to stop"
)
_RESERVED = (
    "keys that belong to the operator: queen-operator.dev/... and app.kubernetes.io/component,"
    " app.kubernetes.io/instance, app.kubernetes.io/managed-by, app.kubernetes.io/name"
)
_KEY_FORM = "a key has the form name or domain/name, of letters, digits, '-', '_' and '.'"
_TENANCY = "spec.broker.env: QUEEN_TENANCY_HEADER needs QUEEN_KV_TRUSTED_PROXY as well: the broker exits without it"
_KEY = {"name": "keys", "key": "k"}


def minimal(**more: Any) -> Spec:
    """Return the smallest good spec, with parts replaced or added."""
    spec = {"version": "1.3.0", "postgres": {"host": "pg", "passwordSecret": {"name": "pg"}}}
    return copy.deepcopy({**spec, **more})


def resource(spec: Spec, name: str = "orders") -> dict[str, Any]:
    """Return a whole QueenCluster."""
    return {
        "apiVersion": "queen-operator.dev/v1alpha1",
        "kind": "QueenCluster",
        "metadata": {"name": name},
        "spec": spec,
    }


def postgres(**more: Any) -> Spec:
    """Return the minimal spec with more about the database."""
    return minimal(postgres={"host": "pg", "passwordSecret": {"name": "pg"}, **more})


def env(**values: str) -> Spec:
    """Return the minimal spec with environment variables."""
    return minimal(broker={"env": [{"name": name, "value": value} for name, value in values.items()]})


@dataclass(frozen=True)
class Case:
    """A resource and everything that is wrong with it, as `path: sentence`; `old` is the spec before the change."""

    id: str
    spec: Spec
    says: tuple[str, ...] = ()
    name: str = "orders"
    old: Spec | None = field(default=None)


def _entry(name: str, value: str, *says: str) -> Case:
    return Case(f"env {name}={value}", env(**{name: value}), says)


def _owned(name: str, advice: str) -> Case:
    return _entry(name, "1", f"spec.broker.env[0].name: {name} is set by the operator: {advice}")


def _bad_value(name: str, value: str, sentence: str) -> Case:
    return _entry(name, value, f"spec.broker.env[0].value: {name}: {sentence}")


NAMES = (
    Case("one letter", minimal(), name="a"),
    Case("40 characters", minimal(), name="a" * 40),
    Case("ends in a digit", minimal(), name="orders2"),
    Case("a number inside", minimal(), name="orders-0-eu"),
    Case("push and mesh inside", minimal(), name="push-mesh-orders"),
    Case("41 characters", minimal(), (_NAME_LENGTH,), "a" * 41),
    Case("63 characters", minimal(), (_NAME_LENGTH,), "a" * 63),
    Case("a dot", minimal(), (_NAME_FORM,), "orders.eu"),
    Case("a digit first", minimal(), (_NAME_FORM,), "1orders"),
    Case("a broker's name", minimal(), (_NAME_TAKEN,), "orders-0"),
    Case("a claim's name", minimal(), (_NAME_TAKEN,), "orders-spool-12"),
    Case("the push Service's name", minimal(), (_NAME_TAKEN,), "orders-push"),
    Case("the mesh Secret's name", minimal(), (_NAME_TAKEN,), "orders-mesh"),
)

DATABASE = (
    Case("credentials instead of host and password", minimal(postgres={"credentialsSecret": {"name": "app"}})),
    Case("a host beside credentials", minimal(postgres={"host": "pg", "credentialsSecret": {"name": "app"}})),
    Case("no password", minimal(postgres={"host": "pg"}), (_ONE_SECRET,)),
    Case("two secrets", postgres(credentialsSecret={"name": "app"}), (_ONE_SECRET,)),
    Case("no host", minimal(postgres={"passwordSecret": {"name": "pg"}}), (_NO_HOST,)),
    Case("nothing about the database", minimal(postgres={}), (_ONE_SECRET, _NO_HOST)),
    Case("brokers fit exactly", postgres(maxConnections=97)),
    Case(
        "one connection too many",
        postgres(maxConnections=96),
        (
            "spec.postgres.maxConnections: 3 x (28 + 1) + 10 is more than 96:"
            " lower replicas or poolSize, or raise max_connections",
        ),
    ),
    Case(
        "pool too large for the replicas",
        {**postgres(poolSize=50, maxConnections=200), "replicas": 4},
        (
            "spec.postgres.maxConnections: 4 x (50 + 1) + 10 is more than 200:"
            " lower replicas or poolSize, or raise max_connections",
        ),
    ),
    Case("spooling a frozen database", postgres(onFrozen="Spool")),
    Case(
        "spooling a frozen database with authentication and a token",
        {**postgres(onFrozen="Spool"), "auth": {"enabled": True, "secret": _KEY, "adminTokenSecret": _KEY}},
    ),
    Case(
        "spooling a frozen database with authentication and no token",
        {**postgres(onFrozen="Spool"), "auth": {"enabled": True, "secret": _KEY}},
        (
            "spec.postgres.onFrozen: onFrozen: Spool needs auth.adminTokenSecret while auth.enabled is true:"
            " maintenance mode is switched with a token of the role admin",
        ),
    ),
    Case("a CA with TLS", postgres(tls={"enabled": True, "caSecret": _KEY})),
    Case(
        "a CA without TLS",
        postgres(tls={"caSecret": _KEY}),
        (
            "spec.postgres.tls.caSecret: caSecret needs enabled: true,"
            " or brokers would connect in plain text all the same",
        ),
    ),
)

TIMES = (
    Case("a second", minimal(broker={"popTimeout": "1s", "statementTimeout": "1000ms"})),
    Case("an hour together", minimal(broker={"maxPopTimeout": "59m", "statementTimeout": "1m"})),
    Case("too long with maxPopTimeout", minimal(broker={"maxPopTimeout": "1h"}), (_TOO_LONG_CALL,)),
    Case("too long with popTimeout", minimal(broker={"popTimeout": "59m59s"}), (_TOO_LONG_CALL,)),
    Case("the longest duration", minimal(broker={"popTimeout": "999999h999999h"}), (_TOO_LONG_CALL,)),
    *(
        Case(f"{part}.{name} of {value}", minimal(**{part: {name: value}}), (f"spec.{part}.{name}: at least 1s",))
        for part, name in (
            ("broker", "popTimeout"),
            ("broker", "maxPopTimeout"),
            ("broker", "statementTimeout"),
            ("broker", "statsInterval"),
            ("broker", "metricsFlushInterval"),
            ("broker", "retentionInterval"),
            ("rollout", "brokerDeadline"),
            ("rollout", "spoolDeadline"),
        )
        for value in ("0s", "999ms")
    ),
)

KEYS = (
    Case("HS with secret", minimal(auth={"enabled": True, "secret": _KEY})),
    Case("EdDSA with public key", minimal(auth={"enabled": True, "algorithm": "EdDSA", "publicKeySecret": _KEY})),
    Case("RS with JWKS", minimal(auth={"enabled": True, "algorithm": "RS384", "jwksUrl": "https://issuer/keys"})),
    Case("auto with JWKS", minimal(auth={"enabled": True, "algorithm": "auto", "jwksUrl": "https://issuer/keys"})),
    Case("auto with secret", minimal(auth={"enabled": True, "algorithm": "auto", "secret": _KEY})),
    Case("not enabled", minimal(auth={"algorithm": "RS256"})),
    Case("no key at all", minimal(auth={"enabled": True}), (_KEY_OF_ALGORITHM,)),
    Case(
        "HS with JWKS alone",
        minimal(auth={"enabled": True, "algorithm": "HS512", "jwksUrl": "https://issuer/keys"}),
        (_KEY_OF_ALGORITHM,),
    ),
    Case("HS with public key alone", minimal(auth={"enabled": True, "publicKeySecret": _KEY}), (_KEY_OF_ALGORITHM,)),
    Case(
        "RS with secret alone",
        minimal(auth={"enabled": True, "algorithm": "RS256", "secret": _KEY}),
        (_KEY_OF_ALGORITHM,),
    ),
    Case(
        "EdDSA with secret alone",
        minimal(auth={"enabled": True, "algorithm": "EdDSA", "secret": _KEY}),
        (_KEY_OF_ALGORITHM,),
    ),
    Case("auto without key", minimal(auth={"enabled": True, "algorithm": "auto"}), (_KEY_OF_ALGORITHM,)),
)

_SIZE = "spec.spool.size: at least 1Mi: write the unit, as in 5Gi"
_STEP = "spec.spool.autoGrow.step: at least 1Mi: write the unit, as in 5Gi"
_MOST = "spec.spool.autoGrow.max: not less than spool.size: a volume never shrinks"
_CLASS = "spec.spool.storageClassName: cannot be changed: a claim keeps the class that it was made with"
_MODE = "spec.spool.accessMode: cannot be changed: a claim keeps the mode that it was made with"


def _spool(**fields: Any) -> Spec:
    return minimal(spool=fields)


def _grow(**fields: Any) -> Spec:
    return _spool(size="10Gi", autoGrow={"max": "50Gi", **fields})


SPOOL = (
    Case("a size without a unit", _spool(size=5), (_SIZE,)),
    Case("a size in thousandths", _spool(size="5000m"), (_SIZE,)),
    Case("no size at all", _spool(size="0"), (_SIZE,)),
    Case("a size in bytes", _spool(size=5368709120)),
    Case("an exponent", _spool(size="5e9")),
    Case("what Helm makes of a large number", _spool(size="5.36870912e+09")),
    Case("everything about claims", _spool(onScaleDown="Retain", onDelete="DeleteWhenEmpty", autoGrow={"max": "1Ti"})),
    Case("growth with its defaults", _grow()),
    Case("growth in detail", _grow(below="9%", step=1073741824, max="51200Mi")),
    Case("growth to the size that is there", _grow(max="10240Mi")),
    Case("growth to less than the size", _grow(max="9Gi"), (_MOST,)),
    Case("growth to less than the default size", _spool(autoGrow={"max": "4Gi"}), (_MOST,)),
    Case("growth to a number without a unit", _grow(max=50), (_MOST,)),
    Case("growth by nothing", _grow(step="0"), (_STEP,)),
    Case("growth by a number without a unit", _grow(step=5), (_STEP,)),
    Case("growth by steps beyond the largest size", _grow(step="100Gi")),
    Case("a size above the largest one", _spool(size="60Gi", autoGrow={"max": "50Gi"}), (_MOST,), old=_grow()),
    Case("growth to a smaller size than before", _grow(max="20Gi"), old=_grow()),
    Case("growth taken out", _spool(size="10Gi"), old=_grow()),
    Case("the policies changed", _spool(onScaleDown="Retain", onDelete="DeleteWhenEmpty"), old=minimal()),
    Case("the same size in another spelling", _spool(size="10240Mi"), old=_spool(size="10Gi")),
    Case("a larger size", _spool(size="1.5Ti"), old=_spool(size="10Gi")),
    Case("a number after a text", _spool(size=10737418240), old=_spool(size="10Gi")),
    Case(
        "a smaller size",
        _spool(size="5Gi"),
        ("spec.spool.size: a volume cannot shrink: 10Gi to 5Gi",),
        old=_spool(size="10Gi"),
    ),
    Case(
        "a smaller size in larger digits",
        _spool(size="9999M"),
        ("spec.spool.size: a volume cannot shrink: 10Gi to 9999M",),
        old=_spool(size="10Gi"),
    ),
    Case(
        "a smaller number",
        _spool(size=2147483648),
        ("spec.spool.size: a volume cannot shrink: 10737418240 to 2147483648",),
        old=_spool(size=10737418240),
    ),
    Case(
        "a size taken out",
        minimal(),
        ("spec.spool.size: a volume cannot shrink: 10Gi to 5Gi",),
        old=_spool(size="10Gi"),
    ),
    Case("a class put in", _spool(storageClassName="fast"), (_CLASS,), old=minimal()),
    Case("a class taken out", minimal(), (_CLASS,), old=_spool(storageClassName="fast")),
    Case("another class", _spool(storageClassName="slow"), (_CLASS,), old=_spool(storageClassName="fast")),
    Case("the same class", _spool(storageClassName="fast", size="6Gi"), old=_spool(storageClassName="fast")),
    Case("another mode", _spool(accessMode="ReadWriteOnce"), (_MODE,), old=minimal()),
    Case("the default mode written out", _spool(accessMode="ReadWriteOncePod"), old=minimal()),
    Case(
        "everything changed at once",
        _spool(size="1Gi", storageClassName="slow", accessMode="ReadWriteOnce"),
        ("spec.spool.size: a volume cannot shrink: 5Gi to 1Gi", _CLASS, _MODE),
        old=minimal(),
    ),
)

PODS = (
    Case("a request at its limit", minimal(resources={"requests": {"cpu": "0.5"}, "limits": {"cpu": "500m"}})),
    Case("a request without a limit", minimal(resources={"requests": {"cpu": 2, "memory": "1Gi"}})),
    Case("no resources", minimal(resources={"requests": {}, "limits": {}})),
    Case(
        "requests above limits",
        minimal(
            resources={
                "requests": {"cpu": 2, "memory": "2Gi", "ephemeral-storage": "1Gi"},
                "limits": {"cpu": "1999m", "memory": "1Gi", "ephemeral-storage": "1G"},
            }
        ),
        (
            "spec.resources.requests: the request for cpu is more than its limit",
            "spec.resources.requests: the request for ephemeral-storage is more than its limit",
            "spec.resources.requests: the request for memory is more than its limit",
        ),
    ),
    Case(
        "a limit below the default request",
        minimal(resources={"limits": {"memory": "64Mi"}}),
        ("spec.resources.requests: the request for memory is more than its limit",),
    ),
    Case(
        "a misspelt resource",
        minimal(resources={"requests": {"mem": "1Gi"}, "limits": {"CPU": 1}}),
        (
            "spec.resources.requests: only cpu, ephemeral-storage and memory",
            "spec.resources.limits: only cpu, ephemeral-storage and memory",
        ),
    ),
    Case(
        "good labels and annotations",
        minimal(
            podLabels={"team": "orders", "app.kubernetes.io/part-of": "shop", "example.com/a_b.C": ""},
            podAnnotations={"example.com/note": "a: b # c\nñ✓"},
            service={"annotations": {"example.com/class": "internal"}},
            scheduling={"nodeSelector": {"kubernetes.io/arch": "amd64"}},
        ),
    ),
    *(
        Case(f"{key} in {field_name}", minimal(**{field_name: {key: "x"}}), (f"spec.{field_name}: {_RESERVED}",))
        for field_name in ("podLabels", "podAnnotations")
        for key in (
            "queen-operator.dev/push",
            "app.kubernetes.io/name",
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "app.kubernetes.io/component",
        )
    ),
    Case(
        "our key on a Service",
        minimal(service={"annotations": {"queen-operator.dev/x": "1"}}),
        (f"spec.service.annotations: {_RESERVED}",),
    ),
    *(
        Case(f"the key {key!r}", minimal(podLabels={key: "x"}), (f"spec.podLabels: {_KEY_FORM}",))
        for key in ("a b", "-a", "a/b/c", "Example.com/a", "x" * 64, "ñ", "")
    ),
    Case(
        "a bad key of a node",
        minimal(scheduling={"nodeSelector": {"a b": "x"}}),
        (f"spec.scheduling.nodeSelector: {_KEY_FORM}",),
    ),
)

_BOOLEAN = "write true or false, in quotes; the broker exits on anything else"
_FROM_1 = "write a whole number from 1 to 2147483647, digits only, in quotes"
_PATHS = "write paths that start with / and are separated by commas; one that ends in / would open all below it"

ENVIRONMENT = (
    Case("odd values of free names", env(A="on", B="0123", C="1e3", D="true", E="", F="ñ✓", G="a: b # c", H="{{ x }}")),
    _entry("LINES", "line1\nline2"),
    _entry("QUEEN_OF_A_LATER_VERSION", "whatever"),
    _entry("QUEEN_DEDUP_CACHE", "OFF"),
    _entry("QUEEN_DEDUP_CACHE_MB", "64"),
    _entry("FILE_BUFFER_EVENTS_PER_FILE", "500"),
    _entry("QUEEN_EPHEMERAL_MAX_BYTES", "1099511627776"),
    _entry("QUEEN_ADMISSION_SHARE_POP", "0.4"),
    _entry("QUEEN_POP_AUTOPILOT", "shadow"),
    _entry("JWT_SKIP_PATHS", "/health, /metrics,/,/api/v1/push"),
    _entry("JWT_SKIP_PATHS", ""),
    Case("tenancy behind a proxy", env(QUEEN_TENANCY_HEADER="1", QUEEN_KV_TRUSTED_PROXY="yes")),
    Case("tenancy off", env(QUEEN_TENANCY_HEADER="off")),
    _owned("PORT", "brokers always listen on 6632"),
    _owned("PG_HOST", "use the fields of spec.postgres"),
    _owned("PG_OF_A_LATER_VERSION", "use the fields of spec.postgres"),
    _owned("DB_POOL_SIZE", "use spec.postgres.poolSize"),
    _owned("DEFAULT_TIMEOUT", "use spec.broker.popTimeout"),
    _owned("POP_DEFAULT_TIMEOUT_MS", "use spec.broker.popTimeout"),
    _owned("FILE_BUFFER_DIR", "the spool is always on the volume of spec.spool"),
    _owned("QUEEN_ENCRYPTION_KEY", "use spec.encryption.keySecret"),
    _owned("JWT_SECRET", "use spec.auth.secret"),
    _owned("QUEEN_MESH_PEERS", "the mesh is made from spec.replicas and spec.mesh"),
    _owned("QUEEN_UDP_NOTIFY_PORT", "the mesh is made from spec.replicas and spec.mesh"),
    _owned("QUEEN_SERVER_ID", "each broker has the name of its Deployment"),
    _owned("RUST_LOG", "use spec.broker.logLevel"),
    *(
        _entry(name, "1", f"spec.broker.env[0].name: {name} has no effect in Queen 1.x: leave it out")
        for name in ("QUEEN_KV_POOL_SIZE", "NUM_WORKERS", "QUEEN_SEG_PUSH_MAX", "QUEEN_VEGAS_ALPHA")
    ),
    *(_bad_value("QUEEN_HOTLIST", value, _BOOLEAN) for value in ("ture", "2", "", " true", "yes\n")),
    *(_bad_value("QUEEN_DEDUP_CACHE_MB", value, _FROM_1) for value in ("64Mi", "", " 64", "0", "-1", "1e3", "0x40")),
    _bad_value("RETENTION_PARALLELISM", "17", "write a whole number from 1 to 16, digits only, in quotes"),
    _bad_value("QUEEN_POP_AUTOPILOT_BURST_CAP", "65", "write a whole number from 0 to 64, digits only, in quotes"),
    _bad_value("QUEEN_ADMISSION_SHARE_ACK", "1.5", "write a number from 0 to 1, such as 1 or 0.25, in quotes"),
    _bad_value("QUEEN_POP_AUTOPILOT", "shaddow", "write off, on or shadow"),
    _bad_value("DEFAULT_SUBSCRIPTION_MODE", "New", "write all or new"),
    _bad_value("JWT_ROLE_ADMIN", "", "write a name or leave it out; the broker would take empty as the name"),
    *(_bad_value("JWT_SKIP_PATHS", value, _PATHS) for value in ("/health,/api/", "/api/ ,/health", "health", "//")),
    Case("tenancy without a proxy", env(QUEEN_TENANCY_HEADER="on"), (_TENANCY,)),
    Case("tenancy with the proxy off", env(QUEEN_TENANCY_HEADER="1", QUEEN_KV_TRUSTED_PROXY="no"), (_TENANCY,)),
    Case(
        "several at once",
        env(OK="1", PORT="80", NUM_WORKERS="4", QUEEN_SWEEPER="ja"),
        (
            "spec.broker.env[1].name: PORT is set by the operator: brokers always listen on 6632",
            "spec.broker.env[2].name: NUM_WORKERS has no effect in Queen 1.x: leave it out",
            f"spec.broker.env[3].value: QUEEN_SWEEPER: {_BOOLEAN}",
        ),
    ),
    Case(
        "a name twice",
        minimal(broker={"env": [{"name": "A"}, {"name": "B"}, {"name": "A", "value": "2"}]}),
        ('spec.broker.env[2]: Duplicate value: {"name":"A"}',),
    ),
    Case(
        "a pull secret twice",
        minimal(imagePullSecrets=[{"name": "a"}, {"name": "a"}]),
        ('spec.imagePullSecrets[1]: Duplicate value: {"name":"a"}',),
    ),
)

CASES = (Case("minimal", minimal()), *NAMES, *DATABASE, *TIMES, *KEYS, *SPOOL, *PODS, *ENVIRONMENT)

# Specs that do not even have the right form, with the field that both must name.
MISSHAPEN: tuple[tuple[str, Spec, str], ...] = (
    ("no replica", minimal(replicas=0), "spec.replicas"),
    ("ten replicas", minimal(replicas=10), "spec.replicas"),
    ("replicas in quotes", minimal(replicas="3"), "spec.replicas"),
    ("half a replica", minimal(replicas=2.5), "spec.replicas"),
    ("a pool too small", postgres(poolSize=19), "spec.postgres.poolSize"),
    ("a URL for a host", minimal(postgres={"host": "pg/db", "passwordSecret": {"name": "pg"}}), "spec.postgres.host"),
    (
        "a secret without a name",
        minimal(postgres={"host": "pg", "passwordSecret": {}}),
        "spec.postgres.passwordSecret.name",
    ),
    ("no version", {"postgres": {"host": "pg", "passwordSecret": {"name": "pg"}}}, "spec.version"),
    ("another Queen", minimal(version="2.0.0"), "spec.version"),
    ("a version that YAML takes for a number", minimal(version=1.3), "spec.version"),
    ("no database", {"version": "1.3.0"}, "spec.postgres"),
    (
        "a boolean that YAML made of on",
        minimal(broker={"env": [{"name": "A", "value": True}]}),
        "spec.broker.env[0].value",
    ),
    (
        "a number that YAML made of 0123",
        minimal(broker={"env": [{"name": "A", "value": 83}]}),
        "spec.broker.env[0].value",
    ),
    ("a variable with a space", minimal(broker={"env": [{"name": "A B", "value": ""}]}), "spec.broker.env[0].name"),
    ("a zero byte", minimal(broker={"env": [{"name": "A", "value": "a\0b"}]}), "spec.broker.env[0].value"),
    ("101 variables", env(**{f"V{index}": "" for index in range(101)}), "spec.broker.env"),
    ("seconds without a unit", minimal(broker={"popTimeout": "30"}), "spec.broker.popTimeout"),
    ("seconds as a number", minimal(broker={"popTimeout": 30}), "spec.broker.popTimeout"),
    ("a negative time", minimal(broker={"popTimeout": "-30s"}), "spec.broker.popTimeout"),
    ("an unknown log level", minimal(broker={"logLevel": "loud"}), "spec.broker.logLevel"),
    ("a size that is a word", minimal(spool={"size": "banana"}), "spec.spool.size"),
    ("an empty size", minimal(spool={"size": ""}), "spec.spool.size"),
    ("a negative size", minimal(spool={"size": "-5Gi"}), "spec.spool.size"),
    ("a negative number for a size", minimal(spool={"size": -5368709120}), "spec.spool.size"),
    ("a size that is a boolean", minimal(spool={"size": True}), "spec.spool.size"),
    ("a policy of claims that does not exist", minimal(spool={"onScaleDown": "Keep"}), "spec.spool.onScaleDown"),
    ("a deletion without proof", minimal(spool={"onDelete": "Delete"}), "spec.spool.onDelete"),
    ("growth without an end", minimal(spool={"autoGrow": {"step": "5Gi"}}), "spec.spool.autoGrow.max"),
    ("growth below a number", minimal(spool={"autoGrow": {"max": "9Gi", "below": 20}}), "spec.spool.autoGrow.below"),
    ("growth below nothing", minimal(spool={"autoGrow": {"max": "9Gi", "below": "0%"}}), "spec.spool.autoGrow.below"),
    ("growth below all", minimal(spool={"autoGrow": {"max": "9Gi", "below": "100%"}}), "spec.spool.autoGrow.below"),
    ("growth by a word", minimal(spool={"autoGrow": {"max": "9Gi", "step": "much"}}), "spec.spool.autoGrow.step"),
    ("a quantity with a wrong unit", minimal(resources={"limits": {"memory": "1GB"}}), "spec.resources.limits.memory"),
    ("an unknown algorithm", minimal(auth={"algorithm": "none"}), "spec.auth.algorithm"),
    ("a JWKS file", minimal(auth={"jwksUrl": "file:///keys"}), "spec.auth.jwksUrl"),
    ("yes in quotes", minimal(paused="yes"), "spec.paused"),
    ("an unknown pull policy", minimal(imagePullPolicy="Sometimes"), "spec.imagePullPolicy"),
    ("a label with spaces", minimal(podLabels={"a": "a b"}), "spec.podLabels.a"),
    ("a label that is a number", minimal(podLabels={"a": 1}), "spec.podLabels.a"),
    ("root", minimal(securityContext={"runAsUser": 0}), "spec.securityContext.runAsUser"),
    ("a list for a section", minimal(auth=[]), "spec.auth"),
    ("a section for a list", minimal(scheduling={"tolerations": {}}), "spec.scheduling.tolerations"),
)
