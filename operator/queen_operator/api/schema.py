"""From pydantic models to the structural schema that Kubernetes takes: no references, no null, no titles, defaults."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """The models' own JSON schema, with the three differences that matter to Kubernetes."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """An optional field is one that may be left out; Kubernetes takes null for that by itself."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """A model made by a factory has the default ``{}``: the API server fills in the defaults below it."""
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            made = {key: value for key, value in made.items() if key != "default"}
        factory: Any = schema.get("default_factory")
        if factory is not None:
            value = factory()
            made = {**made, "default": {} if isinstance(value, BaseModel) else value}
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles: they only repeat names."""
        return False


def structural_schema(model: type[BaseModel], *, defaults: bool) -> Schema:
    """Return the schema of a model, complete in itself; ``defaults`` tells whether the API server fills them in."""
    made = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    return _structural(made, made.get("$defs", {}), defaults=defaults)


def _structural(schema: Schema, definitions: Schema, *, defaults: bool) -> Schema:
    reference = schema.get("$ref")
    if reference is not None:
        schema = {**definitions[reference.rsplit("/", 1)[1]], **schema}
    dropped = {"$ref", "$defs", "title"} | (set() if defaults else {"default"})
    made = {key: value for key, value in schema.items() if key not in dropped}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _structural(made[key], definitions, defaults=defaults)
    if made.get("additionalProperties") is True:
        del made["additionalProperties"]
    if "properties" in made:
        made["properties"] = {
            name: _structural(child, definitions, defaults=defaults) for name, child in made["properties"].items()
        }
    return made


def node_at(schema: Schema, path: str) -> Schema:
    """Return the part of a schema that a path such as ``spec.broker.env[]`` names; the whole for an empty path."""
    for segment in path.split(".") if path else []:
        name = segment.removesuffix("[]")
        schema = schema["properties"][name]
        if name != segment:
            schema = schema["items"]
    return schema
