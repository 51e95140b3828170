"""Stored resources: read, or refused in sentences that name each field and no value."""

from __future__ import annotations

from typing import Any

import pytest

from queen_operator.api.cluster import InvalidSpec, parse
from queen_operator.api.reading import read_spec
from queen_operator.api.spec import AccessMode, LogLevel
from tests.support.specs import env, minimal, resource


def _stored(spec: Any, name: str = "orders", **metadata: Any) -> dict[str, Any]:
    made = resource(spec, name)
    made["metadata"] |= {"namespace": "shop", "uid": "u-1", "generation": 7} | metadata
    return made


def test_a_stored_cluster_is_read_with_every_default() -> None:
    cluster = parse(_stored(minimal(), annotations={"queen-operator.dev/restart": "today"}))

    assert (cluster.name, cluster.namespace, cluster.uid, cluster.generation) == ("orders", "shop", "u-1", 7)
    assert not cluster.deleting
    assert cluster.annotations == {"queen-operator.dev/restart": "today"}
    assert cluster.spec.replicas == 3
    assert cluster.spec.postgres.pool_size == 28
    assert cluster.spec.broker.log_level is LogLevel.INFO
    assert cluster.spec.spool.access_mode is AccessMode.READ_WRITE_ONCE_POD
    assert cluster.spec.resources.requests == {"cpu": "100m", "memory": "128Mi"}
    assert cluster.warnings == ()


def test_a_cluster_with_a_deletion_timestamp_is_being_deleted() -> None:
    assert parse(_stored(minimal(), deletionTimestamp="2030-01-01T00:00:00Z")).deleting


def test_values_are_handed_over_byte_for_byte() -> None:
    values = {"A": "on", "B": "0123", "C": "1e3", "D": "true", "E": "", "F": "ñ✓", "G": "a: b # c", "H": "{{ x }}"}
    spec = read_spec(env(**values, I="line1\nline2"))

    assert {entry.name: entry.value for entry in spec.broker.env} == {**values, "I": "line1\nline2"}


def test_a_quantity_keeps_the_spelling_of_the_user() -> None:
    spec = read_spec(minimal(spool={"size": "1.5Gi"}, resources={"limits": {"cpu": 2, "memory": "1024Mi"}}))

    assert spec.spool.size == "1.5Gi"
    assert spec.resources.limits == {"cpu": 2, "memory": "1024Mi"}


def test_a_resource_stored_under_a_looser_definition_names_each_wrong_field_in_one_line() -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse(_stored(minimal(spool={"size": ""}, replicas="three")))

    assert str(refused.value) == (
        "spec.replicas: must be a whole number; spec.spool.size: '' is not a quantity:"
        " write a number and perhaps a unit, such as 500m, 128Mi or 5Gi"
    )


@pytest.mark.parametrize("spec", [None, [], "x", 5, {}])
def test_a_resource_without_a_spec_is_refused_with_a_sentence(spec: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"^spec.*: (must be an object with fields|is required)"):
        parse(_stored(spec))


def test_no_sentence_repeats_what_may_be_a_secret() -> None:
    secret = "hunter2 with a space"
    spec = {
        "version": secret,
        "postgres": {"host": secret, "user": [secret], "passwordSecret": {"name": secret, "key": secret}},
        "broker": {"env": [{"name": "A", "value": [secret]}, {"name": secret, "value": secret * 400}]},
        "auth": {"algorithm": secret, "jwksUrl": secret, "secret": secret},
        "imagePullPolicy": secret,
    }
    with pytest.raises(InvalidSpec) as refused:
        read_spec(spec)

    assert "hunter2" not in str(refused.value)
    assert len(refused.value.problems) == 12


def test_fields_of_a_newer_definition_are_left_alone() -> None:
    assert read_spec(minimal(ofTomorrow={"a": 1})) == read_spec(minimal())


@pytest.mark.parametrize(
    ("name", "spec", "told"),
    [
        ("orders.eu", minimal(), "metadata.name: "),
        ("orders-0", minimal(), "metadata.name: "),
        ("orders", minimal(postgres={"host": "pg"}), "spec.postgres: "),
        ("orders", minimal(postgres={"passwordSecret": {"name": "pg"}}), "spec.postgres.host: "),
    ],
)
def test_a_resource_from_which_no_right_children_can_be_made_is_refused(name: str, spec: Any, told: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse(_stored(spec, name))

    assert [problem.startswith(told) for problem in refused.value.problems] == [True]


def test_a_rule_that_is_younger_than_a_resource_is_a_warning() -> None:
    cluster = parse(_stored({**env(NUM_WORKERS="4", QUEEN_HOTLIST="maybe", PORT="80"), "replicas": 9}))

    assert cluster.spec.replicas == 9
    assert sorted(warning.split(": ", 1)[0] for warning in cluster.warnings) == [
        "spec.broker.env[0].name",
        "spec.broker.env[1].value",
        "spec.broker.env[2].name",
    ]
