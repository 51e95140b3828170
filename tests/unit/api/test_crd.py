"""The definition that is shipped: current, structural, complete, and small enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from queen_operator.api import crd
from queen_operator.api.reading import read_spec
from queen_operator.api.rule import Rule, Transition
from queen_operator.api.rules import RULES, TRANSITIONS
from queen_operator.api.schema import node_at
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.api.status import QueenClusterStatus
from tests.support.specs import minimal

_ALL: tuple[Rule | Transition, ...] = (*RULES, *TRANSITIONS)


def _schema() -> dict[str, Any]:
    version = crd.custom_resource_definition()["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def _nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}".lstrip("."))
    for part, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if part in schema:
            yield from _nodes(schema[part], f"{path}{mark}")


def test_the_files_of_the_checkout_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert crd.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_a_file_that_is_not_current_is_named_and_then_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(tmp_path)]
    assert crd.main(["--check", *root]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{tmp_path / file} is not current: run python -m queen_operator.api.crd"
        for file in ("crds/queenclusters.yaml", "charts/queen-operator/templates/crd.yaml")
    ]

    assert crd.main(root) == 0
    assert crd.main(["--check", *root]) == 0


def test_the_definition_stays_below_sixty_kilobytes() -> None:
    assert len(crd.plain_text().encode()) < 60_000


def test_the_file_says_what_the_function_says_and_nothing_twice() -> None:
    assert yaml.safe_load(crd.plain_text()) == crd.custom_resource_definition()
    assert "&id" not in crd.plain_text()


def test_the_chart_has_the_same_definition_behind_its_two_switches() -> None:
    text = crd.chart_text()
    switches = re.findall(r"\{\{-.*?\}\}", text)
    plain = "\n".join(line for line in text.splitlines() if "{{" not in line)
    parsed = yaml.safe_load(plain)

    assert [switch for switch in switches if "if" in switch] == [
        "{{- if .Values.crd.install }}",
        "{{- if .Values.crd.keep }}",
    ]
    assert parsed["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert parsed["metadata"].pop("labels") is None
    assert parsed == crd.custom_resource_definition()


def test_the_schema_has_nothing_that_kubernetes_forbids() -> None:
    forbidden = {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title", "propertyNames", "patternProperties", "const"}
    found = [(path, forbidden & node.keys()) for path, node in _nodes(_schema()) if forbidden & node.keys()]
    both = [path for path, node in _nodes(_schema()) if {"properties", "additionalProperties"} <= node.keys()]
    untyped = [
        path for path, node in _nodes(_schema()) if "type" not in node and not node.get("x-kubernetes-int-or-string")
    ]

    assert (found, both, untyped) == ([], [], [])


def test_every_field_of_the_spec_is_explained() -> None:
    spec = _schema()["properties"]["spec"]
    silent = [path for path, node in _nodes(spec) if path and path[-1] not in "]}" and "description" not in node]

    assert silent == []


def test_every_list_and_map_that_a_rule_walks_has_a_limit() -> None:
    spec = _schema()["properties"]["spec"]
    limits = {"array": "maxItems", "object": "maxProperties"}
    open_ended = [
        path
        for path, node in _nodes(spec)
        if ("items" in node or "additionalProperties" in node) and limits[node["type"]] not in node
    ]

    assert open_ended == []


def test_every_rule_is_in_the_schema_with_its_words() -> None:
    schema = _schema()
    for rule in _ALL:
        written = [entry for entry in node_at(schema, rule.at)["x-kubernetes-validations"] if entry["rule"] == rule.cel]

        assert len(written) == 1, rule.cel
        assert written[0].get("message", "") == rule.message.fixed
        assert written[0].get("messageExpression", "") == rule.message.cel


def test_a_rule_points_at_a_field_that_exists() -> None:
    schema = _schema()
    for rule in _ALL:
        target = f"{rule.at}{rule.field}".lstrip(".")

        assert node_at(schema, target), rule.cel


def test_a_rule_about_the_whole_resource_is_for_new_ones_only() -> None:
    # Otherwise it would refuse the status, the labels and the finalizers of every resource that is older than it.
    rules = _schema()["x-kubernetes-validations"]

    assert [(rule["optionalOldSelf"], rule["rule"].startswith("oldSelf.hasValue() || ")) for rule in rules] == [
        (True, True)
    ] * len(rules)


def test_the_defaults_of_the_schema_are_the_defaults_of_the_models() -> None:
    filled = _with_defaults(_schema()["properties"]["spec"], minimal())

    assert read_spec(filled) == read_spec(minimal())
    assert QueenClusterSpec.model_validate_json(read_spec(minimal()).model_dump_json(by_alias=True)) == read_spec(
        filled
    )


def _with_defaults(schema: dict[str, Any], value: Any) -> Any:
    """Fill in defaults as the API server does."""
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for name, child in schema["properties"].items():
        if name not in filled and "default" in child:
            filled[name] = child["default"]
        if name in filled:
            filled[name] = _with_defaults(child, filled[name])
    return filled


def _model_fields(model: type[BaseModel], path: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, info in model.model_fields.items():
        field_path = f"{path}.{info.alias or name}"
        inner = _inner_model(info.annotation)
        listed = "tuple" in str(info.annotation)
        yield field_path, info
        if inner is not None:
            yield from _model_fields(inner, f"{field_path}[]" if listed else field_path)


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner_model(part)) is not None), None)


@pytest.mark.parametrize(("model", "root"), [(QueenClusterSpec, "spec"), (QueenClusterStatus, "status")])
def test_every_field_of_the_models_is_declared(model: type[BaseModel], root: str) -> None:
    # The API server drops an undeclared field and answers 200: a status would be lost without a word.
    declared = {path for path, _ in _nodes(_schema())}
    undeclared = [path for path, _ in _model_fields(model, root) if path not in declared]

    assert undeclared == []
    assert len(list(_model_fields(model, root))) > 20


def test_only_the_status_as_a_whole_has_a_default() -> None:
    status = _schema()["properties"]["status"]
    inside = [path for path, node in _nodes(status) if path and "default" in node]

    assert inside == []
    assert status["default"]["observedGeneration"] == -1
    assert QueenClusterStatus.model_validate(status["default"]).conditions[0].status == "Unknown"


def test_enumerations_are_declared_word_for_word() -> None:
    schema = _schema()
    for root, model in (("spec", QueenClusterSpec), ("status", QueenClusterStatus)):
        for path, info in _model_fields(model, root):
            kinds = (info.annotation, *get_args(info.annotation))
            words = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, StrEnum)]

            assert [[*kind] for kind in words] == [node_at(schema, path)["enum"] for _ in words], path
