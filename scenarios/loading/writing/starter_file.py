"""The starter file of `peerveil new`: every key with its default and a short comment, generated from the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from p2p.config.choices import Choice
from p2p.config.distributions import Drawn
from scenarios.loading.load import parse_scenario
from scenarios.loading.writing.dump import dump_value, kind_of, to_flow, to_yaml
from scenarios.loading.writing.field_docs import REQUIRED, Key, is_structured, keys_of, literals, marker, members
from scenarios.schema import Scenario

COMMENT_AT = 40
TOP = (
    "# A scenario of peerveil. Check it with `peerveil check`, run it with `peerveil run`.",
    "# Required: name, rounds, clients, data, model, protocol. All other lines show the default and may go.",
    "# Where a kind is named, other kinds have other keys: see `peerveil schema`.",
    "",
)
EXAMPLE = {
    "question": "What do I want to know?",
    "rounds": 5,
    "clients": 20,
    "data": "digits",
    "model": "mlp",
    "protocol": {"kind": "gossip", "train_per_round": 10, "exchange_with": 4},
}
PRIVACY = {"clip": "flat", "noise": {"kind": "gaussian", "calibrate": "adpdfl"}}


def starter_text(name: str) -> str:
    """Returns a commented scenario file that passes `check`, one line per key.

    Raises:
        UserError: the name is not valid for a scenario.
    """
    # Parsed and not just written: the file shows every default, and a bad name is refused.
    example = parse_scenario(to_yaml({"name": name, **EXAMPLE}), source="name")
    private = parse_scenario(to_yaml({"name": name, **EXAMPLE, "privacy": PRIVACY}), source="name")
    lines = list(TOP)
    for key in keys_of(Scenario):
        lines += _lines(key, getattr(example, key.name), "")
        if key.name == "privacy":
            # Privacy is off by default; its keys are shown commented out.
            lines += [f"# {line}" for line in _lines(key, private.privacy, "")]
    return "\n".join(lines) + "\n"


def _lines(key: Key, value: Any, indent: str) -> Iterator[str]:
    """Yields the line of a key, and those of the keys inside it."""
    section = _section(key.annotation)
    if section is None or not isinstance(dump_value(key.annotation, value), dict):
        yield _line(indent, key.name, to_flow(dump_value(key.annotation, value)), _comment(key) + _kinds(section))
        return
    yield _line(indent, key.name, "", _comment(key))
    inner = indent + "  "
    choice = marker(section, Choice)
    if choice is not None:
        yield _line(inner, choice.key, kind_of(choice, value), f"one of {', '.join(choice.table)}")
    strategy: type = type(value)
    for inside in keys_of(strategy):
        yield from _lines(inside, getattr(value, inside.name), inner)


def _section(annotation: Any) -> Any:
    """Returns the member of an annotation that is written as a block; distributions stay on one line."""
    sections = [option for option in members(annotation) if is_structured(option) and not marker(option, Drawn)]
    return sections[0] if sections else None


def _line(indent: str, name: str, value: str, comment: str) -> str:
    text = f"{indent}{name}: {value}".rstrip()
    return f"{text:<{COMMENT_AT}}  # {comment}" if comment else text


def _kinds(section: Any) -> str:
    """Returns the end of the comment on a section that is written as a bare name: the kinds there are."""
    choice = None if section is None else marker(section, Choice)
    return "" if choice is None else f"; one of {', '.join(choice.table)}"


def _comment(key: Key) -> str:
    """Returns the comment on a key, with its allowed words if the text does not name them all."""
    text = f"{key.doc} (required)" if key.default is REQUIRED else key.doc
    words = [str(word) for option in members(key.annotation) for word in literals(option)]
    unnamed = [word for word in words if word.lower() not in text.lower()]
    return _cut(f"{text}; one of {', '.join(words).lower()}" if unnamed else text)


def _cut(text: str, longest: int = 110) -> str:
    """Truncates a long text at the last comma or semicolon that still fits."""
    if len(text) <= longest:
        return text
    head = text[:longest]
    return head[: max(head.rfind(", "), head.rfind("; "), 1)]
