"""What restarts a broker: a change of what the user wrote, never of what the operator renders.

Each cause has a hash of the user's words for it, kept on the pod template. Only what differs from the defaults is
hashed, and a cause about which the user wrote nothing has no hash at all: so a new field, a new cause or a new
default in a later operator changes nothing for clusters that do not use it. Moving a field from one cause to
another, or renaming one below, would restart every cluster that uses it at the next upgrade.

The content of a Secret that cannot be read is UNREAD, which is no change: a Secret that is away for a moment would
otherwise restart every broker, into the gap.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from queen_operator.api.spec import AuthSpec, OnFrozen, PostgresSpec, QueenClusterSpec, SecretKey
from queen_operator.api.units import duration_ms
from queen_operator.manifests.canonical import in_one_order, quantities, short_hash
from queen_operator.manifests.context import Context
from queen_operator.manifests.images import default_image
from queen_operator.manifests.references import CONNECTION_PURPOSES, references
from queen_operator.manifests.timing import longest_call_ms

Words = dict[str, Any]

UNREAD: Final = "unread"


class RestartCause(StrEnum):
    """Why a broker has to be restarted: a closed list. The value is the key in the annotation."""

    VERSION = "Version"
    IMAGE = "Image"
    CONNECTION = "Connection"
    CREDENTIALS = "Credentials"
    ENVIRONMENT = "Environment"
    SECRET_CONTENT = "SecretContent"  # noqa: S105  a cause, no secret
    GRACE_PERIOD = "GracePeriod"
    RESOURCES = "Resources"
    SCHEDULING = "Scheduling"
    POD_METADATA = "PodMetadata"
    SECURITY_CONTEXT = "SecurityContext"
    USER_RESTART = "UserRestart"
    EDITED = "Edited"
    UNKNOWN = "Unknown"
    VOLUME_FULL = "VolumeFull"  # this and the next are never in an annotation: the pod is replaced as it is
    VOLUME_RESIZE = "VolumeResize"

    @property
    def sentence(self) -> str:
        """What happened, for people; goes into a longer sentence."""
        return _SENTENCES[self]


_SENTENCES: Final[Mapping[RestartCause, str]] = {
    RestartCause.VERSION: "the version of Queen was changed",
    RestartCause.IMAGE: "the image, or how it is pulled, was changed",
    RestartCause.CONNECTION: "the connection to PostgreSQL was changed",
    RestartCause.CREDENTIALS: "the content of a Secret for PostgreSQL was changed",
    RestartCause.ENVIRONMENT: "the settings of the broker were changed",
    RestartCause.SECRET_CONTENT: "the content of a Secret of the broker was changed",
    RestartCause.GRACE_PERIOD: "the longest time that a call may take was changed",
    RestartCause.RESOURCES: "the resources were changed",
    RestartCause.SCHEDULING: "the scheduling was changed",
    RestartCause.POD_METADATA: "the labels or annotations of the pods were changed",
    RestartCause.SECURITY_CONTEXT: "the user or groups of the pods were changed",
    RestartCause.USER_RESTART: "a restart was asked for",
    RestartCause.EDITED: "its Deployment was edited by hand",
    RestartCause.UNKNOWN: "it cannot be seen what the running broker was made from",
    RestartCause.VOLUME_FULL: "its volume was full",
    RestartCause.VOLUME_RESIZE: "its file system grows with a new pod only",
}


def config_parts(context: Context) -> dict[str, str]:
    """Return the hash of what the user wrote, by cause; causes about which nothing was written are left out.

    UNREAD stands for the content of Secrets when any of it is not known.
    """
    parts = {cause: _hash(_written(words, context.spec)) for cause, words in _WORDS.items()}
    parts |= _secret_content(context)
    if context.restart:
        parts[RestartCause.USER_RESTART] = short_hash(context.restart)
    return {str(cause): part for cause, part in sorted(parts.items()) if part is not None}


def changed_causes(live_annotation: str | None, wanted: Mapping[str, str]) -> tuple[RestartCause, ...]:
    """Return what differs between a running broker's annotation and ``config_parts()``, in the order of the causes.

    An annotation that is missing or unreadable gives Unknown alone. What was not read is no change. Nor is a restart
    annotation that was taken off again: only a new value asks for a restart.
    """
    live = _read(live_annotation)
    if live is None:
        return (RestartCause.UNKNOWN,)
    return tuple(cause for cause in RestartCause if _is_changed(cause, live.get(cause), wanted.get(cause)))


def _is_changed(cause: RestartCause, live: Any, wanted: str | None) -> bool:
    if wanted == UNREAD or (cause is RestartCause.USER_RESTART and wanted is None):
        return False
    return bool(live != wanted)


def touches_connection(causes: Iterable[RestartCause]) -> bool:
    """Tell whether these causes may cure a database that brokers cannot reach."""
    return not {RestartCause.CONNECTION, RestartCause.CREDENTIALS}.isdisjoint(causes)


def of_the_volume(causes: Iterable[RestartCause]) -> bool:
    """Tell whether these causes ask for a new pod alone, made from the template as it is."""
    return {RestartCause.VOLUME_FULL, RestartCause.VOLUME_RESIZE}.issuperset(causes)


def _read(annotation: str | None) -> Mapping[str, Any] | None:
    try:
        parts = json.loads(annotation or "")
    except ValueError:
        return None
    return parts if isinstance(parts, dict) else None


def _written(words: Callable[[QueenClusterSpec], Words], spec: QueenClusterSpec) -> Words:
    defaults = words(_NOTHING_WRITTEN)
    return {name: value for name, value in words(spec).items() if value != defaults.get(name)}


def _secret_content(context: Context) -> dict[RestartCause, str | None]:
    content: dict[RestartCause, Words] = {RestartCause.CREDENTIALS: {}, RestartCause.SECRET_CONTENT: {}}
    for reference in references(context.name, context.spec):
        of_connection = reference.purpose in CONNECTION_PURPOSES
        cause = RestartCause.CREDENTIALS if of_connection else RestartCause.SECRET_CONTENT
        content[cause][reference.purpose] = context.digest(reference.secret, reference.key)
    return {cause: UNREAD if None in words.values() else _hash(words) for cause, words in content.items()}


def _hash(words: Words) -> str | None:
    return short_hash(words) if words else None


def _version(spec: QueenClusterSpec) -> Words:
    return {"version": spec.version}


def _image(spec: QueenClusterSpec) -> Words:
    return {
        "image": None if spec.image == default_image(spec.version) else spec.image,
        "pullPolicy": spec.image_pull_policy,
        "pullSecrets": sorted({secret.name for secret in spec.image_pull_secrets}),
    }


def _connection(spec: QueenClusterSpec) -> Words:
    postgres = spec.postgres
    words = _where_postgres_is(postgres)
    if postgres.tls.enabled:
        words |= {"tls": True, "verify": postgres.tls.verify, "ca": _key(postgres.tls.ca_secret)}
    return words


def _where_postgres_is(postgres: PostgresSpec) -> Words:
    words: Words = {} if postgres.host is None else {"host": postgres.host, "port": postgres.port}
    if postgres.credentials_secret is not None:
        return words | {"credentialsSecret": postgres.credentials_secret.name}
    return words | {
        "database": postgres.database,
        "user": postgres.user,
        "passwordSecret": _key(postgres.password_secret),
    }


def _environment(spec: QueenClusterSpec) -> Words:
    broker = spec.broker
    return {
        "poolSize": spec.postgres.pool_size,
        "popTimeout": duration_ms(broker.pop_timeout),
        "statementTimeout": duration_ms(broker.statement_timeout),
        "applySchema": broker.apply_schema,
        "logLevel": broker.log_level.value,
        "logJson": broker.log_json,
        "statsInterval": duration_ms(broker.stats_interval),
        "metricsFlushInterval": duration_ms(broker.metrics_flush_interval),
        "retentionInterval": duration_ms(broker.retention_interval),
        "env": {entry.name: entry.value for entry in broker.env},
        "auth": _authentication(spec.auth),
        "encryption": _key(spec.encryption.key_secret) if spec.encryption else None,
        "mesh": _key(spec.mesh.secret),
        "replaysSafely": True if spec.postgres.on_frozen is OnFrozen.SPOOL else None,
    }


def _authentication(auth: AuthSpec) -> Words | None:
    if not auth.enabled:
        return None
    words = {
        "secret": _key(auth.secret),
        "publicKeySecret": _key(auth.public_key_secret),
        "jwksUrl": auth.jwks_url,
        "issuer": auth.issuer,
        "audience": auth.audience,
    }
    return {"algorithm": auth.algorithm.value} | {name: value for name, value in words.items() if value}


def _grace_period(spec: QueenClusterSpec) -> Words:
    return {"longestCall": longest_call_ms(spec)}


def _resources(spec: QueenClusterSpec) -> Words:
    return {"requests": quantities(spec.resources.requests), "limits": quantities(spec.resources.limits)}


def _scheduling(spec: QueenClusterSpec) -> Words:
    scheduling = spec.scheduling
    spread = scheduling.topology_spread_constraints
    return {
        "nodeSelector": scheduling.node_selector,
        "tolerations": in_one_order(scheduling.tolerations),
        "affinity": scheduling.affinity or None,
        "spread": None if spread is None else in_one_order(spread),
        "priorityClass": scheduling.priority_class_name or None,
    }


def _pod_metadata(spec: QueenClusterSpec) -> Words:
    return {"labels": spec.pod_labels, "annotations": spec.pod_annotations}


def _security_context(spec: QueenClusterSpec) -> Words:
    context = spec.security_context
    return {"user": context.run_as_user, "group": context.run_as_group, "fsGroup": context.fs_group}


def _key(key: SecretKey | None) -> list[str] | None:
    return None if key is None else [key.name, key.key]


_WORDS: Final[Mapping[RestartCause, Callable[[QueenClusterSpec], Words]]] = {
    RestartCause.VERSION: _version,
    RestartCause.IMAGE: _image,
    RestartCause.CONNECTION: _connection,
    RestartCause.ENVIRONMENT: _environment,
    RestartCause.GRACE_PERIOD: _grace_period,
    RestartCause.RESOURCES: _resources,
    RestartCause.SCHEDULING: _scheduling,
    RestartCause.POD_METADATA: _pod_metadata,
    RestartCause.SECURITY_CONTEXT: _security_context,
}

# The version has no default; this one only stands for "not written" and no release has it.
_NOTHING_WRITTEN: Final = QueenClusterSpec(version="1.0.0-nothing-written", postgres=PostgresSpec())
