import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.unit.chart import helm

SCHEMA = json.loads((helm.CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((helm.CHART / "values.yaml").read_text())


def open_objects(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Places of the schema that list properties and still let others in."""
    if "properties" in schema:
        if schema.get("additionalProperties") is not False:
            yield path or "the top"
        for name, inner in schema["properties"].items():
            yield from open_objects(inner, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from open_objects(schema["items"], f"{path}[]")


@pytest.mark.usefixtures("needs_helm")
@pytest.mark.parametrize(
    ("values", "place", "words"),
    [
        ({"replicaCount": 2}, "''", "additional properties 'replicaCount' not allowed"),
        ({"image": {"tagg": "1"}}, "'/image'", "additional properties 'tagg' not allowed"),
        ({"image": {"tag": 1.1}}, "'/image/tag'", "got number, want string"),
        ({"image": {"digest": "sha256:abc"}}, "'/image/digest'", "does not match pattern"),
        ({"image": {"pullPolicy": "Sometimes"}}, "'/image/pullPolicy'", "value must be one of 'Always'"),
        ({"replicas": "2"}, "'/replicas'", "got string, want integer"),
        ({"replicas": -1}, "'/replicas'", "minimum: got -1, want 0"),
        ({"watchNamespaces": "orders"}, "'/watchNamespaces'", "got string, want array"),
        ({"watchNamespaces": ["a", "a"]}, "'/watchNamespaces'", "items at 0 and 1 are equal"),
        ({"watchNamespaces": ["*"]}, "'/watchNamespaces/0'", "does not match pattern"),
        ({"logging": {"level": "trace"}}, "'/logging/level'", "value must be one of 'debug', 'info'"),
        ({"crd": {"keep": "yes please"}}, "'/crd/keep'", "got string, want boolean"),
        ({"resources": {"limits": {"memory": "lots"}}}, "'/resources/limits/memory'", "does not match pattern"),
        ({"extraEnv": [{"name": "A", "value": True}]}, "'/extraEnv/0/value'", "got boolean, want string"),
        ({"extraEnv": [{"name": "A-B"}]}, "'/extraEnv/0/name'", "does not match pattern"),
        ({"podLabels": {"a": "not a label"}}, "'/podLabels/a'", "does not match pattern"),
        ({"securityContext": {"runAsNonroot": True}}, "'/securityContext'", "additional properties 'runAsNonroot'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place_and_what_is_wanted(
    values: dict[str, Any], place: str, words: str
) -> None:
    refused = helm.refusal(values)

    assert f"at {place}" in refused
    assert words in refused


@pytest.mark.usefixtures("needs_helm")
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["A", "A"], "extraEnv: A is given twice"),
        (["QUEEN_OPERATOR_NAMESPACES"], "extraEnv: QUEEN_OPERATOR_NAMESPACES is the chart's own: use its values"),
    ],
)
def test_an_environment_name_that_is_taken_is_refused_before_the_api_server_sees_it(
    names: list[str], words: str
) -> None:
    assert words in helm.refusal({"extraEnv": [{"name": name, "value": "x"} for name in names]})


def test_the_schema_is_closed_everywhere() -> None:
    assert list(open_objects(SCHEMA)) == []


def test_every_value_is_in_the_schema_and_every_key_of_the_schema_has_a_value() -> None:
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()
    for name in ("image", "crd", "serviceAccount", "rbac", "logging"):
        assert SCHEMA["properties"][name]["properties"].keys() == VALUES[name].keys(), name


def test_every_key_at_the_top_says_what_it_is_for() -> None:
    silent = [name for name, schema in SCHEMA["properties"].items() if not schema.get("description")]

    assert silent == []
