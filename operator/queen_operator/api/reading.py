"""Reading a stored spec: into the model, or into sentences that name each wrong field."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from queen_operator.api.spec import QueenClusterSpec
from queen_operator.api.units import DURATION_PATTERN


class InvalidSpec(Exception):  # noqa: N818  named like the condition's reason
    """A QueenCluster that cannot be read or acted on: ``problems`` has one sentence for each wrong field.

    Never holds a value but numbers and quantities, so it may go into a status.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_spec(spec: Any) -> QueenClusterSpec:
    """Return the model of a spec as it is stored; raises InvalidSpec.

    As strict as the API server: ``"3"`` is no number and ``yes`` in quotes no boolean.
    """
    try:
        return QueenClusterSpec.model_validate_json(json.dumps(spec), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise InvalidSpec(tuple(f"{_path(detail['loc'])}: {_sentence(detail)}" for detail in details)) from None


def _path(location: tuple[int | str, ...]) -> str:
    path = "spec"
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path


_FIXED: Final[Mapping[str, str]] = {
    "missing": "is required",
    "string_type": "must be text: put it in quotes",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false, without quotes",
    "model_type": "must be an object with fields",
    "dict_type": "must be an object with fields",
    "tuple_type": "must be a list",
}

_WITH_LIMIT: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than_equal": lambda context: f"must be at least {context['ge']}",
    "less_than_equal": lambda context: f"must be at most {context['le']}",
    "string_too_short": lambda context: f"must have at least {context['min_length']} characters",
    "string_too_long": lambda context: f"must have at most {context['max_length']} characters",
    "too_long": lambda context: f"must have at most {context['max_length']} entries",
    "enum": lambda context: f"must be {context['expected']}",
    "literal_error": lambda context: f"must be {context['expected']}",
    "string_pattern_mismatch": lambda context: _wanted_form(context["pattern"]),
    "value_error": lambda context: str(context["error"]),
}


def _sentence(detail: ErrorDetails) -> str:
    with_limit = _WITH_LIMIT.get(detail["type"])
    if with_limit is not None:
        return with_limit(detail.get("ctx", {}))
    return _FIXED.get(detail["type"], detail["msg"])


def _wanted_form(pattern: str) -> str:
    if pattern == DURATION_PATTERN:
        return "is not a duration: write a number and a unit, such as 500ms, 30s, 5m or 1h"
    return f"must match {pattern}"
