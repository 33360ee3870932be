"""Plain values that are surely of a type, known without pydantic: to import it takes longer than to read a scenario.

What is not surely right is not called wrong here. `UNSURE` leaves it to `scenarios.strict`, which also says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MaxLen, MinLen

from p2p.units import Unit

UNSURE: Final = object()
_EXACT_AS_FLOAT = 2**53


def surely(annotation: Any, value: Any) -> Any:
    """What `scenarios.strict` would make of the value, or UNSURE."""
    read = _BY_ORIGIN.get(get_origin(annotation))
    return _plain(annotation, value) if read is None else read(annotation, value)


def _plain(annotation: Any, value: Any) -> Any:
    if annotation is float:
        return _number(value)
    if annotation is str:
        # A lone surrogate (neither ASCII nor printable) is no text.
        return value if type(value) is str and (value.isascii() or value.isprintable()) else UNSURE
    known = annotation is int or annotation is bool
    return value if known and type(value) is annotation else UNSURE


def _number(value: Any) -> Any:
    if type(value) is int and abs(value) <= _EXACT_AS_FLOAT:
        return float(value)
    return value if type(value) is float and math.isfinite(value) else UNSURE


def _marked(annotation: Any, value: Any) -> Any:
    marks = annotation.__metadata__
    if len(marks) == 1 and type(marks[0]) is Unit:
        return _quantity(marks[0], value)
    inner = surely(get_args(annotation)[0], value)
    return inner if inner is not UNSURE and all(_holds(mark, inner) for mark in marks) else UNSURE


def _quantity(unit: Unit, value: Any) -> Any:
    """A unit reads the text by itself, whatever the bare type is."""
    try:
        return unit.check(value)
    except ValueError:
        return UNSURE


def _holds(mark: Any, value: Any) -> bool:
    """Whether the value keeps the rule; not if the rule is not known here, or is none for such a value."""
    if type(mark) in (Interval, Len):
        return all(_holds(rule, value) for rule in mark)
    rule = _RULES.get(type(mark))
    try:
        return rule is not None and rule(mark, value)
    except TypeError:
        return False


def _member(annotation: Any, value: Any) -> Any:
    """By the one member of a union that takes the value; between two, pydantic has an order of its own."""
    found = [read for option in get_args(annotation) if (read := surely(option, value)) is not UNSURE]
    return found[0] if len(found) == 1 else UNSURE


def _word(annotation: Any, value: Any) -> Any:
    """One word of a `Literal`; `1` is not `true`."""
    known = any(type(word) is type(value) and word == value for word in get_args(annotation))
    return value if known else UNSURE


def _items(annotation: Any, value: Any) -> Any:
    types = get_args(annotation)
    if not isinstance(value, list):
        return UNSURE
    if types[-1:] == (Ellipsis,):
        types = types[:1] * len(value)
    if len(types) != len(value):
        return UNSURE
    read = tuple(surely(item, entry) for item, entry in zip(types, value, strict=True))
    return UNSURE if any(entry is UNSURE for entry in read) else read


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
