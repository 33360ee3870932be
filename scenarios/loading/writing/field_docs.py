"""Scenario keys of a strategy's dataclass: name, type, default, and the description from its docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from p2p.config.choices import Choice
from p2p.config.distributions import Drawn

REQUIRED = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section; `default` is `REQUIRED` where there is none."""

    name: str
    annotation: Any
    default: Any
    doc: str


@cache
def keys_of(strategy: type) -> tuple[Key, ...]:
    """Returns the keys a scenario may give for this dataclass, in the order of its fields."""
    hints = get_type_hints(strategy, include_extras=True)
    docs: dict[str, str] = {}
    # From base to derived, so that a subclass may describe an inherited field anew.
    for ancestor in reversed(strategy.__mro__[:-1]):
        docs |= _attribute_docs(ancestor)
    return tuple(
        Key(field.name, hints[field.name], _default(field), _doc(field, docs))
        for field in dataclasses.fields(strategy)
        # Internal fields, such as a scenario's plug-ins, are no keys.
        if field.init and field.metadata.get("key", True)
    )


def summary_of(strategy: type) -> str:
    """Returns the first line of the docstring."""
    return (inspect.getdoc(strategy) or "").partition("\n")[0]


def marker(annotation: Any, kind: type) -> Any:
    """Returns the annotation's marker of that type (`Choice`, `Drawn`, `Unit`, ...), or None."""
    if get_origin(annotation) is not Annotated:
        return None
    return next((mark for mark in annotation.__metadata__ if isinstance(mark, kind)), None)


def bare(annotation: Any) -> Any:
    """Returns the annotation without its markers."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def members(annotation: Any) -> tuple[Any, ...]:
    """Returns the members of a union, or the annotation alone; a `Choice` or `Drawn` union counts as one."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    # Annotated[A | B, rule] is a union too, unless its marker makes it one thing.
    if get_origin(annotation) is Annotated and not is_structured(annotation):
        inner = members(bare(annotation))
        return inner if len(inner) > 1 else (annotation,)
    return (annotation,)


def is_structured(annotation: Any) -> bool:
    """Returns whether the value is a mapping with keys of its own."""
    if marker(annotation, Choice) or marker(annotation, Drawn):
        return True
    plain = bare(annotation)
    return isinstance(plain, type) and dataclasses.is_dataclass(plain)


def item_type(annotation: Any) -> Any:
    """Returns `T` of `tuple[T, ...]` or `list[T]`, otherwise None."""
    plain = bare(annotation)
    arguments = get_args(plain)
    if get_origin(plain) is list or (get_origin(plain) is tuple and arguments[-1:] == (Ellipsis,)):
        return arguments[0]
    return None


def literals(annotation: Any) -> tuple[Any, ...]:
    """Returns the values of a `Literal`; empty for other types."""
    plain = bare(annotation)
    return get_args(plain) if get_origin(plain) is typing.Literal else ()


def accepts_none(annotation: Any) -> bool:
    """Returns whether the word `none` means null for this key, rather than naming a choice."""
    options = members(annotation)
    tables = [mark.table for option in options if (mark := marker(option, Choice))]
    words = [*tables, *(literals(option) for option in options)]
    return types.NoneType in options and not any("none" in names for names in words)


def _doc(field: dataclasses.Field[Any], docs: dict[str, str]) -> str:
    text: str = field.metadata.get("doc", docs.get(field.name, ""))
    return text.rstrip(".")


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


_ATTRIBUTE = re.compile(r"^\s+`?(\w+)`?(?:\s*\([^)]*\))?:\s+(.*)$")


def _attribute_docs(strategy: type) -> dict[str, str]:
    """Parses the lines `name: text` below `Attributes:`; deeper indented lines continue the text."""
    docs: dict[str, str] = {}
    name = ""
    _, _, block = inspect.cleandoc(strategy.__doc__ or "").partition("Attributes:\n")
    indent = len(block) - len(block.lstrip(" "))
    for line in block.splitlines():
        match = _ATTRIBUTE.match(line)
        depth = len(line) - len(line.lstrip(" "))
        # A blank line or a smaller indent ends the section.
        if not line.strip() or depth < indent:
            break
        if match and depth == indent:
            name = match[1]
            docs[name] = match[2].strip()
        elif name:
            docs[name] = f"{docs[name]} {line.strip()}"
    return docs
