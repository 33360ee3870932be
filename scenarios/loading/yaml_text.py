"""Parses YAML text into plain values only (mappings, lists, strings, numbers, booleans, null).

Stricter than YAML: no tags, no aliases (they can make a small file expand to a huge value), no duplicate keys, one
document. Scalars follow YAML 1.2, so `1e-5` is a number, and `no` and `off` are strings.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

from scenarios.loading.number_text import FLOAT

MOST_CHARACTERS = 500_000
DEEPEST = 40


def parse_yaml(text: str) -> Any:
    """Parses the text.

    Raises:
        ValueError: the text is not YAML, or uses a disallowed feature; the message has the reason and the line.
    """
    # Bounds the work of the parser before it starts.
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"is longer than {MOST_CHARACTERS} characters; a scenario is a page or two")
    try:
        return _construct(text)
    except yaml.MarkedYAMLError as error:
        raise ValueError(_explain(error)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("is not YAML text: it has characters that YAML does not allow") from error


def _construct(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    if isinstance(error, _NotAllowed):
        return f"{error.problem}{place}"
    return f"is not valid YAML: {error.problem or error.context}{place}"


class _NotAllowed(yaml.MarkedYAMLError):
    """Valid YAML that scenario files may not use."""


class _Loader(yaml.SafeLoader):
    """Builds plain values only, with the resolvers of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the name and the type are PyYAML's
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        # Refused while composing, before any value is built: an alias bomb would expand in the constructor.
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refusal("uses an anchor or alias (& or *); write the values out", event)
        if getattr(event, "tag", None) is not None:
            raise _refusal("uses a YAML tag (!); write plain values", event)
        if self.depth > DEEPEST:
            raise _refusal(f"is nested more than {DEEPEST} levels deep", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = _key_text(key_node)
            if key in seen:
                raise _refusal(f"has the key `{key[:60]}` twice; keep one", key_node)
            # Deep: otherwise PyYAML would fill inner mappings and lists only later.
            seen[key] = self.construct_object(value_node, deep=True)
        return seen

    def construct_whole(self, node: yaml.ScalarNode) -> int | float:
        # No count needs more than 64 bits; as a float a larger number is refused wherever an integer is expected.
        digits = node.value.lstrip("+-0")
        return int(node.value) if len(digits) < 19 else float(node.value)

    def construct_fraction(self, node: yaml.ScalarNode) -> float:
        return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _key_text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _refusal("has a list or mapping as a key; keys are words", node)
    return str(node.value)


def _refusal(problem: str, place: Any) -> _NotAllowed:
    return _NotAllowed(problem=problem, problem_mark=place.start_mark)


def _resolve(tag: str, pattern: re.Pattern[str], first: str) -> None:
    # The empty string is a first character too: an empty value is null.
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", pattern, [*first, ""])


_resolve("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF")
_resolve("null", re.compile(r"^(?:~|null|Null|NULL|)$"), "~nN")
_resolve("int", re.compile(r"^[-+]?[0-9]+$"), "-+0123456789")
_resolve("float", FLOAT, "-+.0123456789")
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_whole)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_fraction)
