"""One spelling for everything that means the same, so that equal things have equal hashes."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from queen_operator.api.units import canonical_quantity


def canonical_json(value: Any) -> str:
    """Return JSON that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def short_hash(value: Any) -> str:
    """Return 12 hexadecimal digits that stand for a JSON value: enough to see a change, short enough to read."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:12]


def in_one_order(items: Iterable[Any]) -> list[Any]:
    """Return the items of a list whose order means nothing in an order that does not depend on how it was written."""
    return sorted(items, key=canonical_json)


def quantities(values: Mapping[str, str | int | float]) -> dict[str, str]:
    """Return quantities by name, all in one spelling; for hashes, never shown to a person."""
    return {name: _quantity(value) for name, value in values.items()}


def _quantity(value: str | int | float) -> str:
    try:
        return canonical_quantity(value)
    except ValueError:
        return str(value)
