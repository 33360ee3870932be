"""Validates plain values without pydantic, whose import takes longer than reading a scenario.

This module never rejects a value. It returns `UNDECIDED` unless the value is certainly valid; then
`scenarios.loading.plain_values_strict` decides and words the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MaxLen, MinLen

from p2p.config.units import Unit

UNDECIDED: Final = object()
_EXACT_AS_FLOAT = 2**53
"""Integers up to here convert to float without loss."""


def parse_if_plain(annotation: Any, value: Any) -> Any:
    """Returns the value exactly as `scenarios.loading.plain_values_strict` would read it, or UNDECIDED."""
    read = _BY_ORIGIN.get(get_origin(annotation))
    return _plain(annotation, value) if read is None else read(annotation, value)


def _plain(annotation: Any, value: Any) -> Any:
    if annotation is float:
        return _number(value)
    if annotation is str:
        # A lone surrogate (neither ASCII nor printable) is not valid text; pydantic rejects it.
        return value if type(value) is str and (value.isascii() or value.isprintable()) else UNDECIDED
    # The exact type: bool is a subclass of int, but `true` is no integer in a scenario.
    known = annotation is int or annotation is bool
    return value if known and type(value) is annotation else UNDECIDED


def _number(value: Any) -> Any:
    if type(value) is int and abs(value) <= _EXACT_AS_FLOAT:
        return float(value)
    return value if type(value) is float and math.isfinite(value) else UNDECIDED


def _marked(annotation: Any, value: Any) -> Any:
    marks = annotation.__metadata__
    # A quantity with further rules is left to pydantic.
    if len(marks) == 1 and type(marks[0]) is Unit:
        return _quantity(marks[0], value)
    inner = parse_if_plain(get_args(annotation)[0], value)
    # A violated rule is UNDECIDED too: pydantic then words the problem.
    return inner if inner is not UNDECIDED and all(_holds(mark, inner) for mark in marks) else UNDECIDED


def _quantity(unit: Unit, value: Any) -> Any:
    """Reads a quantity; the unit alone determines the result, whatever the bare type is."""
    try:
        return unit.check(value)
    except ValueError:
        return UNDECIDED


def _holds(mark: Any, value: Any) -> bool:
    """Returns whether the value certainly satisfies the rule; False for unknown or inapplicable rules."""
    if type(mark) in (Interval, Len):
        return all(_holds(rule, value) for rule in mark)
    rule = _RULES.get(type(mark))
    try:
        return rule is not None and rule(mark, value)
    except TypeError:
        # A rule that does not apply to the type, such as a length of a number: pydantic decides.
        return False


def _member(annotation: Any, value: Any) -> Any:
    """Reads the value as the only union member that accepts it; UNDECIDED if several do, since pydantic ranks them."""
    found = [read for option in get_args(annotation) if (read := parse_if_plain(option, value)) is not UNDECIDED]
    return found[0] if len(found) == 1 else UNDECIDED


def _word(annotation: Any, value: Any) -> Any:
    """Reads one value of a `Literal`; types must match, since `1 == True`."""
    known = any(type(word) is type(value) and word == value for word in get_args(annotation))
    return value if known else UNDECIDED


def _items(annotation: Any, value: Any) -> Any:
    types = get_args(annotation)
    if not isinstance(value, list):
        return UNDECIDED
    # tuple[T, ...] of any length; otherwise one type per entry.
    if types[-1:] == (Ellipsis,):
        types = types[:1] * len(value)
    if len(types) != len(value):
        return UNDECIDED
    read = tuple(parse_if_plain(item, entry) for item, entry in zip(types, value, strict=True))
    # The whole list is left undecided, so that the strict reader names each wrong entry with its place.
    return UNDECIDED if any(entry is UNDECIDED for entry in read) else read


_BY_ORIGIN: dict[Any, Callable[[Any, Any], Any]] = {
    Annotated: _marked,
    Union: _member,
    UnionType: _member,
    Literal: _word,
    tuple: _items,
}
_RULES: dict[type, Callable[[Any, Any], bool]] = {
    Ge: lambda mark, value: value >= mark.ge,
    Gt: lambda mark, value: value > mark.gt,
    Le: lambda mark, value: value <= mark.le,
    Lt: lambda mark, value: value < mark.lt,
    MinLen: lambda mark, value: len(value) >= mark.min_length,
    MaxLen: lambda mark, value: len(value) <= mark.max_length,
}
