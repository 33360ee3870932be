"""Generates the JSON Schema of a scenario from the dataclasses and docstrings that the reader uses."""

from __future__ import annotations

from types import NoneType
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from p2p.config.choices import Choice
from p2p.config.distributions import Drawn, InUnitOfField
from p2p.config.file_paths import ExistingFile
from p2p.config.units import Unit, example
from scenarios.loading.writing.field_docs import (
    REQUIRED,
    Key,
    bare,
    is_structured,
    item_type,
    keys_of,
    marker,
    members,
    summary_of,
)
from scenarios.schema import Scenario

Schema = dict[str, Any]
PLUGIN = {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", "description": "a plug-in, module:Class"}


def scenario_schema() -> Schema:
    """Returns the schema in draft 2020-12: every section and every kind, with a description of each key."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "peerveil scenario",
        **_record(Scenario),
    }


def schema_of(annotation: Any, unit: Unit | None = None) -> Schema:
    """Returns the schema of one field."""
    # Markers come first: they override the annotated type, e.g. a Unit accepts text where the field is a float.
    if choice := marker(annotation, Choice):
        return _choice(choice, unit)
    if drawn := marker(annotation, Drawn):
        return {"anyOf": [_quantity(drawn), *_choice(Choice(drawn.table), drawn)["anyOf"]]}
    if marker(annotation, InUnitOfField):
        return _quantity(unit or Unit(""))
    if own := marker(annotation, Unit):
        return _quantity(own)
    if marker(annotation, ExistingFile):
        return {"type": "string"}
    if len(members(annotation)) > 1:
        return _union(members(annotation), unit)
    item = item_type(annotation)
    if item is not None and is_structured(item):
        return {"type": "array", "items": schema_of(item, unit)}
    if is_structured(annotation):
        return _record(bare(annotation), unit)
    return TypeAdapter(annotation, config=ConfigDict(strict=True)).json_schema()


def _record(strategy: type, unit: Unit | None = None, named: Schema | None = None) -> Schema:
    keys = keys_of(strategy)
    required = [*(named or {}), *(key.name for key in keys if key.default is REQUIRED)]
    schema: Schema = {
        "type": "object",
        "description": summary_of(strategy),
        "properties": {**(named or {}), **{key.name: _described(key, unit) for key in keys}},
        # The reader refuses unknown keys, so an editor may flag them.
        "additionalProperties": False,
    }
    return schema | ({"required": required} if required else {})


def _described(key: Key, unit: Unit | None) -> Schema:
    schema = schema_of(key.annotation, unit)
    return {**schema, "description": key.doc} if key.doc else schema


def _choice(choice: Choice, unit: Unit | None) -> Schema:
    """Accepts each kind as a mapping, its bare name where no other key is needed, or a plug-in."""
    bare_names = [kind for kind, strategy in choice.table.items() if not _needs_keys(strategy)]
    options = [_record(strategy, unit, {choice.key: {"const": kind}}) for kind, strategy in choice.table.items()]
    words: list[Schema] = [{"enum": bare_names}] if bare_names else []
    own = {"type": "object", "properties": {choice.key: PLUGIN}, "required": [choice.key]}
    return {"anyOf": [*words, *options, own, PLUGIN]}


def _needs_keys(strategy: type) -> bool:
    return any(key.default is REQUIRED for key in keys_of(strategy))


def _quantity(unit: Unit) -> Schema:
    return {"type": ["number", "string"], "examples": [example(unit.base)]}


def _union(options: tuple[Any, ...], unit: Unit | None) -> Schema:
    schemas = [schema_of(option, unit) for option in options if option is not NoneType]
    if NoneType in options:
        # Both spellings of null are accepted.
        schemas.append({"enum": [None, "none"]})
    return {"anyOf": schemas}
