"""A QueenCluster as the API server hands it out, read into plain values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queen_operator.api.reading import InvalidSpec, read_spec
from queen_operator.api.rules import broken_rules
from queen_operator.api.spec import QueenClusterSpec

__all__ = ["InvalidSpec", "ParsedCluster", "parse"]


@dataclass(frozen=True, slots=True)
class ParsedCluster:
    """One QueenCluster. ``warnings`` are rules it breaks that do not keep the operator from looking after it.

    A resource can be older than a rule; the API server then lets it stand until its spec is changed, and so do we.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    deleting: bool
    spec: QueenClusterSpec
    annotations: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def parse(resource: Mapping[str, Any]) -> ParsedCluster:
    """Return a stored QueenCluster as values.

    Raises InvalidSpec, with a sentence for each wrong field, when it was stored under an older or looser definition
    and cannot be read, or when no right child objects can be made from it.
    """
    metadata = resource.get("metadata") or {}
    spec = read_spec(resource.get("spec"))
    broken = broken_rules(metadata["name"], spec)
    needed = tuple(str(violation) for violation in broken if violation.needed)
    if needed:
        raise InvalidSpec(needed)
    return ParsedCluster(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=int(metadata.get("generation", 0)),
        deleting=bool(metadata.get("deletionTimestamp")),
        spec=spec,
        annotations=dict(metadata.get("annotations") or {}),
        warnings=tuple(str(violation) for violation in broken),
    )
