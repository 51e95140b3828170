"""Instances of a model with every field set, for proofs that nothing is lost on the way."""

from __future__ import annotations

import types
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

Some = TypeVar("Some", bound=BaseModel)
_TIME = "2030-01-02T03:04:05Z"


def filled(model: type[Some]) -> Some:
    """Return an instance in which no field has its default; lists have two items."""
    return model(**{name: _value(info.annotation, name) for name, info in model.model_fields.items()})


def _value(annotation: Any, name: str, index: int = 1) -> Any:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _value(get_args(annotation)[0], name, index)
    if origin in (Union, types.UnionType):
        return _value(next(part for part in get_args(annotation) if part is not types.NoneType), name, index)
    if origin is tuple:
        return tuple(_value(get_args(annotation)[0], name, number) for number in (1, 2))
    if origin is Literal:
        return get_args(annotation)[0]
    return _plain(annotation, name, index)


def _plain(kind: type[Any], name: str, index: int) -> Any:
    if issubclass(kind, BaseModel):
        # Items of a list are told apart by their fields that name them.
        return filled(kind).model_copy(
            update={key: f"{key}-{index}" for key in ("name", "type") if key in kind.model_fields}
        )
    if issubclass(kind, StrEnum):
        return list(kind)[-1]
    if kind is str and (name == "since" or name.endswith("_time")):
        return _TIME
    return {bool: True, int: 7 + index, str: f"{name} {index}"}[kind]
