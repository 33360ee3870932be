"""Validates strings, numbers, literals and lists of them with pydantic, with problems in our wording."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from scenarios.loading.field_docs import members
from scenarios.loading.problems import Path, rule_of

Complaint = tuple[Path, Any, str]


def read_strictly(annotation: Any, value: Any) -> tuple[Any, list[Complaint]]:
    """Returns the value of that type, and its problems as (place inside it, value there, rule)."""
    try:
        return _adapter(repr(annotation), annotation).validate_json(json.dumps(value)), []
    except ValidationError as error:
        union = len(members(annotation)) > 1
        grouped = _grouped(error, skip=1 if union else 0)
        return None, [(place, _at(value, place), _either(rules)) for place, rules in grouped.items()]


@cache
def _adapter(written: str, annotation: Any) -> TypeAdapter[Any]:
    # `int | str` equals `str | int`, but messages follow the written order: hence both are part of the cache key.
    # Strict and via JSON: `true` is no number and `"5"` no integer, yet a list may become a tuple.
    return TypeAdapter(annotation, config=ConfigDict(strict=True, allow_inf_nan=False))


def _grouped(error: ValidationError, skip: int) -> dict[Path, list[str]]:
    """Groups rules by place; `skip` drops the member's name, which pydantic prepends to the place in a union."""
    grouped: dict[Path, list[str]] = {}
    for line in error.errors(include_url=False):
        rules = grouped.setdefault(tuple(line["loc"][skip:]), [])
        rule = rule_of(dict(line))
        if rule not in rules:
            rules.append(rule)
    return grouped


def _either(rules: list[str]) -> str:
    return " or ".join([rules[0], *(rule.removeprefix("must be ") for rule in rules[1:])])


def _at(value: Any, place: Path) -> Any:
    for part in place:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return value
    return value
