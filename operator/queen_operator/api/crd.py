"""The CustomResourceDefinition, generated from the models and the rules.

``python -m queen_operator.api.crd`` writes it into the checkout, ``--check`` tells whether what lies there is current.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from queen_operator.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION
from queen_operator.api.rule import Rule, Transition
from queen_operator.api.rules import LIST_KEYS, RULES, TRANSITIONS
from queen_operator.api.schema import Schema, node_at, structural_schema
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.api.status import ConditionType, Phase, QueenClusterStatus

PLAIN_FILE: Final = "crds/queenclusters.yaml"
CHART_FILE: Final = "charts/queen-operator/templates/crd.yaml"

_STATUS_LIST_KEYS: Final = {"status.conditions": "type", "status.brokers": "name"}

# What `kubectl get` shows before the operator has seen the resource. The generation of a new resource is 1, and no
# tool takes -1 for "not used": so nobody, kstatus and Argo CD included, reads a new or forgotten resource as done.
INITIAL_STATUS: Final[Mapping[str, Any]] = {
    "observedGeneration": -1,
    "phase": Phase.PENDING.value,
    "message": "Waiting for the operator.",
    "conditions": [
        {
            "type": ConditionType.READY.value,
            "status": "Unknown",
            "reason": "Pending",
            "message": "Waiting for the operator.",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ],
}

# Characters up to which a part of the definition is written on one line; longer texts are never folded.
_ONE_LINE: Final = 130
_NO_FOLDING: Final = 100_000

_COLUMNS: Final = (
    {"name": "Ready", "type": "string", "jsonPath": ".status.ready", "description": "Ready of wanted brokers."},
    {"name": "Version", "type": "string", "jsonPath": ".spec.version", "description": "Version of Queen."},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "One word for people."},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {
        "name": "Message",
        "type": "string",
        "jsonPath": ".status.message",
        "description": "What is going on, with numbers.",
        "priority": 1,
    },
)


def custom_resource_definition() -> dict[str, Any]:
    """Return the definition as a plain dict, the same at every call."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["qc"],
                "categories": ["queen"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [dict(column) for column in _COLUMNS],
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "schema": {"openAPIV3Schema": _schema()},
                }
            ],
        },
    }


def _schema() -> Schema:
    status = structural_schema(QueenClusterStatus, defaults=False)
    schema: Schema = {
        "type": "object",
        "description": "A cluster of Queen brokers on one PostgreSQL database.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {KIND}."},
            # The name is declared so that messages may point at it; Kubernetes allows no more of the metadata.
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": structural_schema(QueenClusterSpec, defaults=True),
            "status": {**status, "default": dict(INITIAL_STATUS)},
        },
    }
    for path, key in {**LIST_KEYS, **_STATUS_LIST_KEYS}.items():
        node_at(schema, path).update({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
    rules: tuple[Rule | Transition, ...] = (*RULES, *TRANSITIONS)
    for rule in rules:
        node = node_at(schema, rule.at)
        node.setdefault("x-kubernetes-validations", []).append(_validation(rule, node))
    return schema


def _validation(rule: Rule | Transition, node: Schema) -> Schema:
    message = rule.message
    made: Schema = {"rule": rule.cel}
    made |= {"messageExpression": message.cel} if message.cel else {"message": message.fixed}
    if rule.field:
        made["fieldPath"] = rule.field
    if isinstance(rule, Rule) and rule.only_when_new:
        made["optionalOldSelf"] = True
    if node.get("type") == "object":
        # Says "Forbidden: ..." where the other reason would say 'Invalid value: "object": ...'.
        made["reason"] = "FieldValueForbidden"
    return made


class _Dumper(yaml.SafeDumper):
    """YAML without anchors, which not every reader resolves, and with small parts on one line, to stay short."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write repeated parts out."""
        return True

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        """Write what fits into a line as ``{...}``."""
        return super().represent_mapping(tag, mapping, flow_style=_fits(mapping, mapping.values()))

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        """Write what fits into a line as ``[...]``."""
        return super().represent_sequence(tag, sequence, flow_style=_fits(sequence, sequence))


def _fits(whole: Any, parts: Iterable[Any]) -> bool:
    return len(str(whole)) < _ONE_LINE and not any(isinstance(part, dict | list) for part in parts)


def plain_text() -> str:
    """Return the content of the file for ``kubectl apply``."""
    head = "# Made by `python -m queen_operator.api.crd`: change the models, not this file.\n"
    body = yaml.dump(
        custom_resource_definition(), Dumper=_Dumper, sort_keys=False, width=_NO_FOLDING, allow_unicode=True
    )
    return head + body


def chart_text() -> str:
    """Return the same as a template of the chart: installed by choice, and kept on uninstall by choice."""
    body = plain_text().replace("{{", '{{ "{{" }}')
    metadata = f"metadata: {{name: {PLURAL}.{GROUP}}}\n"
    wrapped = (
        f"metadata:\n  name: {PLURAL}.{GROUP}\n"
        '  labels:\n    {{- include "queen-operator.labels" . | nindent 4 }}\n'
        "  {{- if .Values.crd.keep }}\n"
        "  annotations:\n    helm.sh/resource-policy: keep\n"
        "  {{- end }}\n"
    )
    return "{{- if .Values.crd.install }}\n" + body.replace(metadata, wrapped, 1) + "{{- end }}\n"


def main(arguments: list[str] | None = None) -> int:
    """Write both files, or with ``--check`` return 1 and say so when they are not current."""
    parser = argparse.ArgumentParser(prog="python -m queen_operator.api.crd", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not current")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[3], help="the checkout")
    options = parser.parse_args(arguments)
    texts = {options.root / PLAIN_FILE: plain_text(), options.root / CHART_FILE: chart_text()}
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if options.check:
        for path in stale:
            print(f"{path} is not current: run python -m queen_operator.api.crd", file=sys.stderr)  # noqa: T201
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
