"""Rules about the name, the database, times and keys.

A rule over an object with a default says ``!has(...) ||`` first: the API server checks the default ``{}`` against it
before nested defaults are filled in.
"""

import re
from collections.abc import Callable
from typing import Final

from queen_operator.api.names import MAX_CLUSTER_NAME_LENGTH
from queen_operator.api.rule import Message, Rule, cel_pattern
from queen_operator.api.spec import (
    AuthSpec,
    BrokerSpec,
    OnFrozen,
    PostgresSpec,
    PostgresTls,
    QueenClusterSpec,
)
from queen_operator.api.units import DURATION_PATTERN, duration_ms

_CONNECTIONS_KEPT_FREE: Final = 10

_NAME_PATTERN: Final = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_TAKEN_NAME_PATTERN: Final = r"-([0-9]+|push|mesh)$"


def _name_rule(cel: str, holds: Callable[[str], bool], message: Message) -> Rule:
    # Only for new objects: a name cannot be corrected, and a rule on the whole object that does not hold any more
    # would refuse status, labels and even the removal of a finalizer.
    return Rule(
        at="",
        cel=f"oldSelf.hasValue() || {cel}",
        holds=lambda resource: holds(resource.metadata.name),
        message=message,
        field=".metadata.name",
        needed=True,
        only_when_new=True,
    )


def _name_rules() -> tuple[Rule, ...]:
    return (
        _name_rule(
            f"size(self.metadata.name) <= {MAX_CLUSTER_NAME_LENGTH}",
            lambda name: len(name) <= MAX_CLUSTER_NAME_LENGTH,
            Message(
                f"a cluster's name has at most {MAX_CLUSTER_NAME_LENGTH} characters: names of pods are made from it"
            ),
        ),
        _name_rule(
            f"self.metadata.name.matches({cel_pattern(_NAME_PATTERN)})",
            lambda name: re.fullmatch(_NAME_PATTERN, name) is not None,
            Message(
                "a cluster's name starts with a letter and has only small letters, digits and hyphens, no dots:"
                " names of Services are made from it"
            ),
        ),
        _name_rule(
            f"!self.metadata.name.matches({cel_pattern(_TAKEN_NAME_PATTERN)})",
            lambda name: re.search(_TAKEN_NAME_PATTERN, name) is None,
            Message(
                "a cluster's name does not end in a hyphen and a number, in -push or in -mesh:"
                " the cluster with the shorter name owns such names"
            ),
        ),
    )


def _connections(spec: QueenClusterSpec) -> int:
    return spec.replicas * (spec.postgres.pool_size + 1) + _CONNECTIONS_KEPT_FREE


def _connections_rule() -> Rule:
    def words(spec: QueenClusterSpec) -> str:
        postgres = spec.postgres
        return (
            f"{spec.replicas} x ({postgres.pool_size} + 1) + {_CONNECTIONS_KEPT_FREE}"
            f" is more than {postgres.max_connections}: lower replicas or poolSize, or raise max_connections"
        )

    return Rule(
        at="spec",
        cel=(
            "!has(self.postgres.maxConnections) || self.replicas * (self.postgres.poolSize + 1)"
            f" + {_CONNECTIONS_KEPT_FREE} <= self.postgres.maxConnections"
        ),
        holds=lambda spec: spec.postgres.max_connections is None or _connections(spec) <= spec.postgres.max_connections,
        message=Message(
            cel=(
                f'"%d x (%d + 1) + {_CONNECTIONS_KEPT_FREE} is more than %d: lower replicas or poolSize, or raise'
                ' max_connections".format([self.replicas, self.postgres.poolSize, self.postgres.maxConnections])'
            ),
            words=words,
        ),
        field=".postgres.maxConnections",
    )


def _frozen_rule() -> Rule:
    return Rule(
        at="spec",
        cel='self.postgres.onFrozen != "Spool" || !self.auth.enabled || has(self.auth.adminTokenSecret)',
        holds=lambda spec: (
            spec.postgres.on_frozen is not OnFrozen.SPOOL
            or not spec.auth.enabled
            or spec.auth.admin_token_secret is not None
        ),
        message=Message(
            "onFrozen: Spool needs auth.adminTokenSecret while auth.enabled is true:"
            " maintenance mode is switched with a token of the role admin"
        ),
        field=".postgres.onFrozen",
    )


def _postgres_rules() -> tuple[Rule, ...]:
    def one_secret(postgres: PostgresSpec) -> bool:
        return (postgres.password_secret is None) != (postgres.credentials_secret is None)

    def reachable(postgres: PostgresSpec) -> bool:
        return postgres.host is not None or postgres.credentials_secret is not None

    def ca_used(tls: PostgresTls) -> bool:
        return tls.ca_secret is None or tls.enabled

    return (
        Rule(
            at="spec.postgres",
            cel="has(self.passwordSecret) != has(self.credentialsSecret)",
            holds=one_secret,
            message=Message("give exactly one of passwordSecret and credentialsSecret"),
            needed=True,
        ),
        Rule(
            at="spec.postgres",
            cel="has(self.host) || has(self.credentialsSecret)",
            holds=reachable,
            message=Message("give the host, or a credentialsSecret that has it"),
            field=".host",
            needed=True,
        ),
        Rule(
            at="spec.postgres.tls",
            cel="!has(self.caSecret) || (has(self.enabled) && self.enabled)",
            holds=ca_used,
            message=Message("caSecret needs enabled: true, or brokers would connect in plain text all the same"),
            field=".caSecret",
        ),
    )


def _is_duration(value: str) -> str:
    # Rules are evaluated beside a pattern that does not match; without this they would add errors about conversion.
    return f"{value}.matches({cel_pattern(DURATION_PATTERN)})"


def _at_least_a_second(at: str) -> Rule:
    return Rule(
        at=at,
        cel=f'!{_is_duration("self")} || duration(self) >= duration("1s")',
        holds=lambda value: duration_ms(value) >= 1000,
        message=Message("at least 1s"),
    )


def _longest_call_ms(broker: BrokerSpec) -> int:
    pop = max(duration_ms(broker.pop_timeout), duration_ms(broker.max_pop_timeout))
    return pop + duration_ms(broker.statement_timeout)


def _duration_rules() -> tuple[Rule, ...]:
    fields = (
        "broker.popTimeout",
        "broker.maxPopTimeout",
        "broker.statementTimeout",
        "broker.statsInterval",
        "broker.metricsFlushInterval",
        "broker.retentionInterval",
        "rollout.brokerDeadline",
        "rollout.spoolDeadline",
    )
    sums = (
        f'duration(self.{pop}) + duration(self.statementTimeout) <= duration("1h")'
        for pop in ("popTimeout", "maxPopTimeout")
    )
    addends = ("popTimeout", "maxPopTimeout", "statementTimeout")
    present = " && ".join(f"has(self.{field}) && {_is_duration(f'self.{field}')}" for field in addends)
    grace = Rule(
        at="spec.broker",
        cel=f"!({present}) || ({' && '.join(sums)})",
        holds=lambda broker: _longest_call_ms(broker) <= 3_600_000,
        message=Message(
            "the longer of popTimeout and maxPopTimeout, plus statementTimeout, is at most 1h:"
            " a broker takes that long to stop"
        ),
        field=".maxPopTimeout",
    )
    return (*(_at_least_a_second(f"spec.{field}") for field in fields), grace)


def _auth_rules() -> tuple[Rule, ...]:
    def key_fits(auth: AuthSpec) -> bool:
        shared = auth.secret is not None
        public = auth.public_key_secret is not None or auth.jwks_url is not None
        if not auth.enabled:
            return True
        if auth.algorithm == "auto":
            return shared or public
        return shared if auth.algorithm.startswith("HS") else public

    public = "(has(self.publicKeySecret) || has(self.jwksUrl))"
    return (
        Rule(
            at="spec.auth",
            cel=(
                "!has(self.enabled) || !self.enabled || !has(self.algorithm)"
                f' || (self.algorithm == "auto" ? has(self.secret) || {public}'
                f' : self.algorithm.startsWith("HS") ? has(self.secret) : {public})'
            ),
            holds=key_fits,
            message=Message(
                "enabled needs the key of its algorithm: secret for HS256, HS384 and HS512, publicKeySecret or jwksUrl"
                " for RS256, RS384, RS512 and EdDSA, any of them for auto; with another key every token is an error"
            ),
        ),
    )


def spec_rules() -> tuple[Rule, ...]:
    """Return the rules of this file."""
    return (
        *_name_rules(),
        _connections_rule(),
        *_postgres_rules(),
        _frozen_rule(),
        *_duration_rules(),
        *_auth_rules(),
    )
