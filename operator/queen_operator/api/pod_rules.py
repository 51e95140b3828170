"""Rules about what the user adds to pods and Services: resources, labels and annotations."""

import re
from collections.abc import Mapping
from typing import Final

from queen_operator.api.names import GROUP, cluster_labels
from queen_operator.api.rule import Message, Rule, cel_list, cel_pattern
from queen_operator.api.spec import ResourcesSpec
from queen_operator.api.units import quantity

_KEY_PATTERN: Final = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_RESOURCES: Final = ("cpu", "ephemeral-storage", "memory")
_RESERVED_KEYS: Final = (
    "app.kubernetes.io/component",
    *sorted(key for key in cluster_labels("") if not key.startswith(f"{GROUP}/")),
)


def pod_rules() -> tuple[Rule, ...]:
    """Return the rules of this file."""
    return (*_resource_rules(), *_key_rules())


def _resource_rules() -> tuple[Rule, ...]:
    known = tuple(
        Rule(
            at=f"spec.resources.{field}",
            cel=f"self.all(k, k in {cel_list(_RESOURCES)})",
            holds=lambda amounts: all(name in _RESOURCES for name in amounts),
            message=Message(f"only {', '.join(_RESOURCES[:-1])} and {_RESOURCES[-1]}"),
        )
        for field in ("requests", "limits")
    )
    return (*known, *(_request_within_limit(name) for name in _RESOURCES))


def _request_within_limit(name: str) -> Rule:
    def holds(resources: ResourcesSpec) -> bool:
        request, limit = resources.requests.get(name), resources.limits.get(name)
        return request is None or limit is None or quantity(request) <= quantity(limit)

    fields = [f"self.{field}" for field in ("requests", "limits")]
    both = " && ".join(
        f'has({field}) && "{name}" in {field} && isQuantity(string({field}["{name}"]))' for field in fields
    )
    request, limit = (f'quantity(string({field}["{name}"]))' for field in fields)
    return Rule(
        at="spec.resources",
        cel=f"!({both}) || {request}.compareTo({limit}) <= 0",
        holds=holds,
        message=Message(f"the request for {name} is more than its limit"),
        field=".requests",
    )


def _key_rules() -> tuple[Rule, ...]:
    def well_formed(keys: Mapping[str, str]) -> bool:
        return all(re.fullmatch(_KEY_PATTERN, key) for key in keys)

    def free(keys: Mapping[str, str]) -> bool:
        return not any(key.startswith(f"{GROUP}/") or key in _RESERVED_KEYS for key in keys)

    ours = ("spec.podLabels", "spec.podAnnotations", "spec.service.annotations")
    form = tuple(
        Rule(
            at=at,
            cel=f"self.all(k, k.matches({cel_pattern(_KEY_PATTERN)}))",
            holds=well_formed,
            message=Message("a key has the form name or domain/name, of letters, digits, '-', '_' and '.'"),
        )
        for at in (*ours, "spec.scheduling.nodeSelector")
    )
    ownership = tuple(
        Rule(
            at=at,
            cel=f'self.all(k, !k.startsWith("{GROUP}/") && !(k in {cel_list(_RESERVED_KEYS)}))',
            holds=free,
            message=Message(f"keys that belong to the operator: {GROUP}/... and {', '.join(_RESERVED_KEYS)}"),
        )
        for at in ours
    )
    return (*form, *ownership)
