"""Templates hold the shape of an object; every value goes in as JSON, so that nothing in it can break out."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import jinja2
import yaml
from markupsafe import Markup

from queen_operator.manifests.yaml_json import yaml_json

_TEMPLATES: Final = Path(__file__).with_name("templates")
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def rendered(template: str, **values: Any) -> dict[str, Any]:
    """Return the object that ``<template>.yaml.j2`` makes of these values.

    Raises jinja2.UndefinedError for a value that the template wants and was not given.
    """
    text = _environment().get_template(f"{template}.yaml.j2").render(values)
    # The parser in C is several times faster; both read the same language.
    loaded = yaml.load(text, Loader=_LOADER)  # noqa: S506  either of them is a safe loader
    if not isinstance(loaded, dict):
        raise TypeError(f"template {template} does not make an object")
    return loaded


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  not HTML; _only_json refuses every value that is not JSON
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_only_json,
    )
    environment.policies["json.dumps_function"] = _dumps
    return environment


def _dumps(value: Any, **_options: Any) -> str:
    return yaml_json(value, default=_refuse)


def _refuse(value: Any) -> str:
    """Say which value is missing, or which type has no JSON."""
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises: undefined is strict
    raise TypeError(f"{type(value).__name__} has no JSON")


def _only_json(value: Any) -> Any:
    """Let through what `tojson` made; anything else in a template is a mistake of ours."""
    if isinstance(value, jinja2.Undefined | Markup):
        return value
    raise TypeError(f"a template inserts {type(value).__name__} without tojson")
