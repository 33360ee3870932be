"""Validates strings, numbers, literals and lists of them with pydantic, with problems in our wording."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from scenarios.loading.problems import Path, rule_of

Complaint = tuple[Path, Any, str]


def read_strictly(annotation: Any, value: Any) -> tuple[Any, list[Complaint]]:
    """Returns the value of that type, and its problems as (place inside it, value there, rule)."""
    try:
        return _adapter(repr(annotation), annotation).validate_json(json.dumps(value)), []
    except ValidationError as error:
        grouped = _grouped(error, value)
        return None, [(place, _at(value, place), _either(rules)) for place, rules in grouped.items()]


@cache
def _adapter(written: str, annotation: Any) -> TypeAdapter[Any]:
    # `int | str` equals `str | int`, but messages follow the written order: hence both are part of the cache key.
    # Strict and via JSON: `true` is no number and `"5"` no integer, yet a list may become a tuple.
    return TypeAdapter(annotation, config=ConfigDict(strict=True, allow_inf_nan=False))


def _grouped(error: ValidationError, value: Any) -> dict[Path, list[str]]:
    """Groups rules by place, without those of a part inside which another place is wrong."""
    grouped: dict[Path, list[str]] = {}
    for line in error.errors(include_url=False):
        rules = grouped.setdefault(_place(line["loc"], value), [])
        rule = rule_of(dict(line))
        if rule not in rules:
            rules.append(rule)
    # In a union the part is refused by its other members too; the one that looked inside it is the one meant.
    outer = {place[:length] for place in grouped for length in range(len(place))}
    return {place: rules for place, rules in grouped.items() if place not in outer}


def _place(loc: Path, value: Any) -> Path:
    """Drops the names of union members, which pydantic puts between the keys: they are no keys of the value."""
    place: Path = ()
    for part in loc:
        here = _at(value, place)
        if isinstance(part, int) or (isinstance(here, dict) and part in here):
            place = (*place, part)
    return place


def _either(rules: list[str]) -> str:
    return " or ".join([rules[0], *(rule.removeprefix("must be ") for rule in rules[1:])])


def _at(value: Any, place: Path) -> Any:
    for part in place:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return value
    return value
