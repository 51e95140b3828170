"""What restarts a broker, and what does not."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from queen_operator.manifests import render
from queen_operator.manifests.config import UNREAD, RestartCause, changed_causes, config_parts, touches_connection
from queen_operator.manifests.context import Context

MakeContext = Callable[..., Context]

TOLERATION = {"key": "busy", "operator": "Exists"}
OTHER_TOLERATION = {"key": "queen", "operator": "Exists"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
OTHER_SPREAD = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}


def _causes(before: Context, after: Context) -> tuple[RestartCause, ...]:
    return changed_causes(json.dumps(config_parts(before)), config_parts(after))


# Each pair means the same: (written one way, written another way).
SAME: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "cpu": ({"resources": {"requests": {"cpu": "0.5"}}}, {"resources": {"requests": {"cpu": "500m"}}}),
    "cpu exponent": ({"resources": {"requests": {"cpu": "5e-1"}}}, {"resources": {"requests": {"cpu": "500m"}}}),
    "cpu number": ({"resources": {"requests": {"cpu": 1}}}, {"resources": {"requests": {"cpu": "1000m"}}}),
    "memory": ({"resources": {"limits": {"memory": "1024Mi"}}}, {}),
    "memory decimal": ({"resources": {"limits": {"memory": "2G"}}}, {"resources": {"limits": {"memory": "2000M"}}}),
    "duration": ({"broker": {"popTimeout": "60s"}}, {"broker": {"popTimeout": "1m"}}),
    "duration default": ({"broker": {"popTimeout": "30000ms", "maxPopTimeout": "1m"}}, {}),
    "env order": (
        {"broker": {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}},
        {"broker": {"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}},
    ),
    "tolerations": (
        {"scheduling": {"tolerations": [TOLERATION, OTHER_TOLERATION]}},
        {"scheduling": {"tolerations": [OTHER_TOLERATION, dict(reversed(TOLERATION.items()))]}},
    ),
    "spread": (
        {"scheduling": {"topologySpreadConstraints": [SPREAD, OTHER_SPREAD]}},
        {"scheduling": {"topologySpreadConstraints": [OTHER_SPREAD, SPREAD]}},
    ),
    "pull secrets": (
        {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]},
        {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]},
    ),
    "image": ({"image": "ghcr.io/queen-mq/queen:1.3.0"}, {}),
    "password key": ({"postgres": {"passwordSecret": {"name": "orders-postgres", "key": "password"}}}, {}),
    "empty affinity": ({"scheduling": {"affinity": {}}}, {}),
    "unused key": ({"auth": {"secret": {"name": "jwt", "key": "k"}, "issuer": "x"}}, {}),
    "unused ca": ({"postgres": {"tls": {"verify": False, "caSecret": {"name": "ca", "key": "crt"}}}}, {}),
    "defaults written out": (
        {
            "imagePullPolicy": "IfNotPresent",
            "postgres": {"port": 5432, "database": "queen", "user": "queen", "tls": {"enabled": False}, "poolSize": 28},
            "broker": {"applySchema": True, "logLevel": "info", "logJson": True, "env": []},
            "scheduling": {"nodeSelector": {}, "tolerations": []},
            "resources": {"requests": {"cpu": "0.1", "memory": "128Mi"}},
            "securityContext": {"runAsUser": 65532},
        },
        {},
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME.keys())
def test_what_means_the_same_restarts_nothing_and_renders_the_same(
    one: Mapping[str, Any], other: Mapping[str, Any], make_context: MakeContext
) -> None:
    first, second = make_context(one), make_context(other)
    assert _causes(first, second) == ()
    first_hash, second_hash = (render.rendered_hash(render.broker_deployment(c, 0)) for c in (first, second))
    assert first_hash == second_hash


CHANGES: list[tuple[Mapping[str, Any], set[RestartCause]]] = [
    ({"version": "1.4.0"}, {RestartCause.VERSION}),
    ({"image": "mine:7"}, {RestartCause.IMAGE}),
    ({"imagePullPolicy": "Always"}, {RestartCause.IMAGE}),
    ({"imagePullSecrets": [{"name": "a"}]}, {RestartCause.IMAGE}),
    ({"postgres": {"host": "other"}}, {RestartCause.CONNECTION}),
    ({"postgres": {"port": 6432}}, {RestartCause.CONNECTION}),
    ({"postgres": {"database": "other"}}, {RestartCause.CONNECTION}),
    ({"postgres": {"user": "other"}}, {RestartCause.CONNECTION}),
    ({"postgres": {"tls": {"enabled": True}}}, {RestartCause.CONNECTION}),
    ({"postgres": {"passwordSecret": {"name": "other"}}}, {RestartCause.CONNECTION, RestartCause.CREDENTIALS}),
    ({"postgres": {"poolSize": 29}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"popTimeout": "45s"}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"maxPopTimeout": "2m"}}, {RestartCause.GRACE_PERIOD}),
    ({"broker": {"statementTimeout": "10s"}}, {RestartCause.ENVIRONMENT, RestartCause.GRACE_PERIOD}),
    ({"broker": {"applySchema": False}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"logLevel": "warn"}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"logJson": False}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"statsInterval": "11s"}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"metricsFlushInterval": "11s"}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"retentionInterval": "11s"}}, {RestartCause.ENVIRONMENT}),
    ({"broker": {"env": [{"name": "A"}]}}, {RestartCause.ENVIRONMENT}),
    (
        {"auth": {"enabled": True, "secret": {"name": "jwt", "key": "k"}}},
        {RestartCause.ENVIRONMENT, RestartCause.SECRET_CONTENT},
    ),
    (
        {"encryption": {"keySecret": {"name": "e", "key": "k"}}},
        {RestartCause.ENVIRONMENT, RestartCause.SECRET_CONTENT},
    ),
    ({"mesh": {"secret": {"name": "m", "key": "k"}}}, {RestartCause.ENVIRONMENT, RestartCause.SECRET_CONTENT}),
    ({"scheduling": {"nodeSelector": {"disk": "ssd"}}}, {RestartCause.SCHEDULING}),
    ({"scheduling": {"tolerations": [TOLERATION]}}, {RestartCause.SCHEDULING}),
    ({"scheduling": {"affinity": {"podAntiAffinity": {}}}}, {RestartCause.SCHEDULING}),
    ({"scheduling": {"topologySpreadConstraints": []}}, {RestartCause.SCHEDULING}),
    ({"scheduling": {"priorityClassName": "high"}}, {RestartCause.SCHEDULING}),
    ({"resources": {"requests": {"cpu": "200m"}}}, {RestartCause.RESOURCES}),
    ({"resources": {"limits": {"memory": "2Gi"}}}, {RestartCause.RESOURCES}),
    ({"podLabels": {"team": "a"}}, {RestartCause.POD_METADATA}),
    ({"podAnnotations": {"note": "a"}}, {RestartCause.POD_METADATA}),
    ({"securityContext": {"runAsUser": 7}}, {RestartCause.SECURITY_CONTEXT}),
    ({"securityContext": {"fsGroup": 7}}, {RestartCause.SECURITY_CONTEXT}),
    # What is no part of a broker's template, or must not restart it.
    ({"replicas": 5}, set()),
    ({"paused": True}, set()),
    ({"postgres": {"maxConnections": 200}}, set()),
    ({"spool": {"size": "20Gi"}}, set()),
    ({"spool": {"storageClassName": "fast"}}, set()),
    ({"spool": {"onScaleDown": "Retain"}}, set()),
    ({"spool": {"onDelete": "DeleteWhenEmpty"}}, set()),
    ({"spool": {"autoGrow": {"below": "30%", "step": "1Gi", "max": "50Gi"}}}, set()),
    ({"service": {"type": "NodePort"}}, set()),
    ({"service": {"annotations": {"a": "b"}}}, set()),
    ({"rollout": {"minReadySeconds": 60}}, set()),
    ({"rollout": {"brokerDeadline": "1h"}}, set()),
]


@pytest.mark.parametrize(("changes", "causes"), CHANGES, ids=[json.dumps(changes) for changes, _ in CHANGES])
def test_each_field_restarts_for_its_own_cause(
    changes: Mapping[str, Any], causes: set[RestartCause], make_context: MakeContext
) -> None:
    assert set(_causes(make_context(), make_context(changes))) == causes
    assert set(_causes(make_context(changes), make_context())) == causes


@pytest.mark.parametrize(("changes", "causes"), CHANGES, ids=[json.dumps(changes) for changes, _ in CHANGES])
def test_a_field_changes_the_template_exactly_when_it_is_a_cause(
    changes: Mapping[str, Any], causes: set[RestartCause], make_context: MakeContext
) -> None:
    before, after = (_template_without_peers(context) for context in (make_context(), make_context(changes)))
    assert (before != after) == bool(causes)


def _template_without_peers(context: Context) -> dict[str, Any]:
    """The peer list follows spec.replicas and is told to a broker at its next restart."""
    template: dict[str, Any] = render.broker_deployment(context, 0)["spec"]["template"]
    broker = template["spec"]["containers"][0]
    broker["env"] = [entry for entry in broker["env"] if entry["name"] != "QUEEN_MESH_PEERS"]
    return template


CONNECTION_KEYS = [
    ("orders-app", "host"),
    ("orders-app", "port"),
    ("orders-app", "dbname"),
    ("orders-app", "user"),
    ("orders-app", "password"),
    ("orders-ca", "ca.crt"),
]
OTHER_KEYS = [("orders-jwt", "public.pem"), ("orders-encryption", "key"), ("orders-own-mesh", "token")]


@pytest.mark.parametrize("key", CONNECTION_KEYS + OTHER_KEYS)
def test_new_content_of_every_referenced_secret_is_a_cause(key: tuple[str, str], make_context: MakeContext) -> None:
    causes = _causes(make_context(base="full"), make_context(base="full", content={key: "another"}))
    connection = key in CONNECTION_KEYS
    assert causes == (RestartCause.CREDENTIALS if connection else RestartCause.SECRET_CONTENT,)
    assert touches_connection(causes) == connection


def test_a_secret_set_back_to_its_old_content_is_no_change(make_context: MakeContext) -> None:
    rotated = make_context(content={("orders-postgres", "password"): "another"})
    assert _causes(rotated, rotated) == _causes(make_context(), make_context()) == ()


def test_a_secret_that_cannot_be_read_restarts_nothing(make_context: MakeContext) -> None:
    away = make_context(secret_digests={("orders-mesh", "secret"): "digest of orders-mesh/secret"})
    assert config_parts(away)["Credentials"] == UNREAD
    assert _causes(make_context(), away) == ()


def test_what_was_made_while_a_secret_was_unread_is_restarted_once_it_is_known(make_context: MakeContext) -> None:
    assert _causes(make_context(secret_digests={}), make_context()) == (
        RestartCause.CREDENTIALS,
        RestartCause.SECRET_CONTENT,
    )


def test_an_operator_that_renders_otherwise_restarts_nothing(make_context: MakeContext) -> None:
    newer = make_context(keeper_image="registry.example/queen-operator:9.9.9")
    assert _causes(make_context(), newer) == ()


def test_a_cause_that_only_a_newer_operator_knows_is_no_change(make_context: MakeContext) -> None:
    parts = config_parts(make_context())
    assert changed_causes(json.dumps(parts | {"Tomorrow": "0123456789ab"}), parts) == ()


def test_nothing_is_hashed_about_which_nothing_was_written(make_context: MakeContext) -> None:
    assert config_parts(make_context()).keys() == {"Version", "Connection", "Credentials", "SecretContent"}


def test_a_new_restart_annotation_restarts_and_taking_it_off_does_not(make_context: MakeContext) -> None:
    plain, asked, again = make_context(), make_context(restart="monday"), make_context(restart="tuesday")
    assert _causes(plain, asked) == (RestartCause.USER_RESTART,)
    assert _causes(asked, again) == (RestartCause.USER_RESTART,)
    assert _causes(asked, asked) == ()
    assert _causes(asked, plain) == ()


@pytest.mark.parametrize("annotation", [None, "", "{", "[]", "null", "7", '"text"'])
def test_an_annotation_that_cannot_be_read_is_a_cause_of_its_own(
    annotation: str | None, make_context: MakeContext
) -> None:
    assert changed_causes(annotation, config_parts(make_context())) == (RestartCause.UNKNOWN,)
    assert not touches_connection((RestartCause.UNKNOWN,))


def test_every_cause_has_words_for_people() -> None:
    for cause in RestartCause:
        assert cause.sentence
        assert not cause.sentence.endswith(".")


def test_no_secret_and_no_digest_is_in_the_parts(make_context: MakeContext) -> None:
    digest = "deadbeef" * 8
    parts = config_parts(make_context(content={("orders-postgres", "password"): digest}))
    assert digest[:12] not in json.dumps(parts)
    assert all(len(part) == 12 for part in parts.values())
