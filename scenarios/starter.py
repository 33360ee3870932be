"""The starter file of `peerveil new`: every key with its default and half a line of why, made from the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2p.choices import Choice
from p2p.distributions import Drawn
from scenarios.dump import dump_value, kind_of, to_flow
from scenarios.keys import REQUIRED, Key, is_structured, keys_of, literals, marker, members
from scenarios.schema import Scenario

COMMENT_AT = 40


def starter_text(example: Scenario) -> str:
    """A commented scenario file with the values of `example`, one line per key."""
    lines = [
        "# A scenario of peerveil. Check it with `peerveil check`, run it with `peerveil run`.",
        "# Required: name, rounds, clients, data, model, protocol. All other lines show defaults and may go.",
        "",
    ]
    for key in keys_of(Scenario):
        lines += _lines(key, getattr(example, key.name), "")
    return "\n".join(lines) + "\n"


def _lines(key: Key, value: Any, indent: str) -> Iterator[str]:
    """The line of a key, and those of the keys inside it."""
    section = _section(key.annotation)
    if section is None or not isinstance(dump_value(section, value), dict):
        yield _line(indent, key.name, to_flow(dump_value(key.annotation, value)), _half(key))
        return
    yield _line(indent, key.name, "", _half(key))
    inner = indent + "  "
    choice = marker(section, Choice)
    if choice is not None:
        yield _line(inner, choice.key, kind_of(choice, value), f"one of {', '.join(choice.table)}")
    strategy: type = type(value)
    for inside in keys_of(strategy):
        yield from _lines(inside, getattr(value, inside.name), inner)


def _section(annotation: Any) -> Any:
    """The part of an annotation that deserves a block of lines; distributions stay on one line."""
    sections = [option for option in members(annotation) if is_structured(option) and not marker(option, Drawn)]
    return sections[0] if sections else None


def _line(indent: str, name: str, value: str, comment: str) -> str:
    text = f"{indent}{name}: {value}".rstrip()
    return f"{text:<{COMMENT_AT}}  # {comment}" if comment else text


def _half(key: Key) -> str:
    """Half a line on a key, with the words it takes if the text does not name them."""
    text = f"{key.doc} (required)" if key.default is REQUIRED else key.doc
    words = [str(word) for option in members(key.annotation) for word in literals(option)]
    unnamed = [word for word in words if word.lower() not in text.lower()]
    return f"{text}; one of {', '.join(words).lower()}" if unnamed else text
