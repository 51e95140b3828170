"""The shape of a rule: one CEL expression for the API server and one predicate for everybody else, with one message."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from pydantic.alias_generators import to_snake

from queen_operator.api.spec import QueenClusterSpec


@dataclass(frozen=True, slots=True)
class Message:
    """What the user reads: a fixed sentence, or a CEL expression and a function that make the same sentence.

    ``words`` gets the rule's node, and for a Transition the old node after it.
    """

    fixed: str = ""
    cel: str = ""
    words: Callable[..., str] | None = None

    def of(self, *nodes: Any) -> str:
        """Return the sentence for a node that breaks the rule."""
        return self.fixed if self.words is None else self.words(*nodes)


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that every QueenCluster must meet.

    ``at`` is the node that CEL calls ``self``: a path such as ``spec.broker``, with ``[]`` for each item of a list, or
    empty for the whole resource. ``holds`` gets the same node as a model. ``field`` is where the message points, below
    ``at``. ``needed`` tells whether no right child objects can be made while the rule is broken. With ``only_when_new``
    CEL has an optional ``oldSelf`` to look at.
    """

    at: str
    cel: str
    holds: Callable[[Any], bool]
    message: Message
    field: str = ""
    needed: bool = False
    only_when_new: bool = False


@dataclass(frozen=True, slots=True)
class Transition:
    """A condition on a change: ``holds`` gets the new and the old node. Not checked when either of them is absent."""

    at: str
    cel: str
    holds: Callable[[Any, Any], bool]
    message: Message
    field: str = ""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What rules may know of an object's metadata."""

    name: str


@dataclass(frozen=True, slots=True)
class Resource:
    """The root node of all rules."""

    metadata: Metadata
    spec: QueenClusterSpec

    @classmethod
    def of(cls, name: str, spec: QueenClusterSpec) -> Self:
        """Make the node from what a rule may know."""
        return cls(Metadata(name), spec)


def nodes(root: Any, at: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each node below ``root`` that ``at`` names; absent ones are left out."""
    yield from _walk(root, "", at.split(".") if at else [])


def _walk(node: Any, path: str, segments: list[str]) -> Iterator[tuple[str, Any]]:
    if node is None:
        return
    if not segments:
        yield path, node
        return
    name = segments[0].removesuffix("[]")
    child = getattr(node, to_snake(name))
    child_path = f"{path}.{name}" if path else name
    if name == segments[0]:
        yield from _walk(child, child_path, segments[1:])
        return
    for index, item in enumerate(child or ()):
        yield from _walk(item, f"{child_path}[{index}]", segments[1:])


def cel_text(text: str) -> str:
    """Return a text as a CEL literal. In double quotes, which YAML in single quotes need not double."""
    return json.dumps(text, ensure_ascii=False)


def cel_pattern(pattern: str) -> str:
    """Return a regular expression as a raw CEL literal; raises ValueError when it has a double quote."""
    if '"' in pattern:
        raise ValueError("a raw CEL text cannot hold a double quote")
    return f'r"{pattern}"'


def cel_list(texts: Iterable[str]) -> str:
    """Return texts as a CEL list."""
    return f"[{', '.join(cel_text(text) for text in texts)}]"


def cel_map(pairs: Iterable[tuple[str, str]]) -> str:
    """Return pairs of texts as a CEL map."""
    return f"{{{', '.join(f'{cel_text(key)}: {cel_text(value)}' for key, value in pairs)}}}"
