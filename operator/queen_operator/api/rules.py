"""All rules of a QueenCluster, and the offline check that says what the API server would say.

Each rule is written once, as CEL for the API server and as a predicate for offline checks and stored objects, with
one message. Needs Kubernetes 1.30: ``optionalOldSelf``, on by default since then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from queen_operator.api.environment_rules import environment_rules
from queen_operator.api.pod_rules import pod_rules
from queen_operator.api.reading import InvalidSpec, read_spec
from queen_operator.api.rule import Resource, Rule, Transition, nodes
from queen_operator.api.spec import QueenClusterSpec
from queen_operator.api.spec_rules import spec_rules
from queen_operator.api.spool_rules import spool_rules, transitions

RULES: Final[tuple[Rule, ...]] = (*spec_rules(), *spool_rules(), *pod_rules(), *environment_rules())
TRANSITIONS: Final[tuple[Transition, ...]] = transitions()

# Lists in which one field names an item: a second item with the same name is refused.
LIST_KEYS: Final[Mapping[str, str]] = {"spec.broker.env": "name", "spec.imagePullSecrets": "name"}


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a resource breaks; ``needed``: no right child objects can be made from such a resource."""

    path: str
    message: str
    needed: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def violations(name: str, spec: QueenClusterSpec | Mapping[str, Any], old: QueenClusterSpec | None = None) -> list[str]:
    """Return what is wrong with a QueenCluster, as ``path: sentence`` in the API server's words; empty when nothing.

    ``old`` is the spec before the change, for the rules about changes. A dict that does not even have the right form
    gives the sentences about its form alone, as rules cannot be checked on it.
    """
    try:
        model = spec if isinstance(spec, QueenClusterSpec) else read_spec(spec)
    except InvalidSpec as error:
        return list(error.problems)
    found = [str(violation) for violation in broken_rules(name, model)]
    if old is not None:
        found += [str(violation) for violation in _broken_transitions(model, old)]
    return found


def broken_rules(name: str, spec: QueenClusterSpec) -> tuple[Violation, ...]:
    """Return the rules that a resource breaks, whatever it was before."""
    resource = Resource.of(name, spec)
    broken = [
        Violation(f"{path}{rule.field}".lstrip("."), rule.message.of(node), rule.needed)
        for rule in RULES
        for path, node in nodes(resource, rule.at)
        if not rule.holds(node)
    ]
    return (*_duplicates(resource), *broken)


def _duplicates(resource: Resource) -> Iterator[Violation]:
    for path, key in LIST_KEYS.items():
        seen: set[str] = set()
        for item_path, item in nodes(resource, f"{path}[]"):
            value = getattr(item, key)
            if value in seen:
                yield Violation(item_path, f'Duplicate value: {{"{key}":"{value}"}}', needed=False)
            seen.add(value)


def _broken_transitions(new: QueenClusterSpec, old: QueenClusterSpec) -> Iterator[Violation]:
    new_resource, old_resource = Resource.of("", new), Resource.of("", old)
    for rule in TRANSITIONS:
        before = dict(nodes(old_resource, rule.at))
        for path, node in nodes(new_resource, rule.at):
            if path in before and not rule.holds(node, before[path]):
                yield Violation(f"{path}{rule.field}", rule.message.of(node, before[path]), needed=False)
