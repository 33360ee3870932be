"""Collects the problems of a scenario to report them all at once: `path = value: rule; cure`."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.number_text import FLOAT
from scenarios.loading.synonyms import meant_by

Path = tuple[str | int, ...]
LONGEST_VALUE = 60


class Problems:
    """A list of problems, in the order found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def wrong(self, path: Path, value: object, rule: str) -> None:
        """Adds: the value at `path` breaks `rule` (which may end in `; cure`)."""
        self.lines.append(printable(f"{dotted(path)} = {shown(value)}: {rule}"))

    def missing(self, path: Path, cure: str) -> None:
        """Adds: the required key at `path` is missing."""
        self.lines.append(printable(f"{dotted(path)}: required key is missing; {cure}"))

    def unknown_key(self, path: Path, known: Iterable[str]) -> None:
        """Adds: the key at `path` is unknown."""
        self.lines.append(printable(f"{dotted(path)}: unknown key; {suggestion(str(path[-1]), known)}"))

    def add(self, lines: Iterable[str]) -> None:
        """Adds problems that already contain their path."""
        self.lines += [printable(line) for line in lines]

    def inside(self, path: Path, lines: Sequence[str], keys: Sequence[str]) -> None:
        """Adds problems that a part reports about itself: of one key (`key = value: rule`), or of the whole part."""
        for line in lines:
            # `key = value: rule`, `key: rule` and `key.inner = ...` all begin with the key.
            about_key = line.split(" = ")[0].split(":")[0].split(".")[0] in keys
            self.lines.append(printable(f"{dotted(path)}{'.' if about_key else ': '}{line}"))

    def about(self, path: Path) -> bool:
        """Returns whether a problem with exactly this path has been added already."""
        return any(line.startswith((f"{dotted(path)} = ", f"{dotted(path)}: ")) for line in self.lines)

    def refuse(self, source: str) -> None:
        """Raises all problems as one `UserError`, if there are any."""
        if self.lines:
            raise UserError(self.lines, printable(source))


def dotted(path: Path) -> str:
    """Formats `("faults", 0, "kind")` as `faults.0.kind`."""
    return ".".join(shorten(str(part)) for part in path)


def shown(value: object) -> str:
    """Formats a value approximately as the user wrote it, shortened."""
    if isinstance(value, str):
        return shorten(json.dumps(value) if _needs_quotes(value) else value)
    return shorten(_compact(value))


def _needs_quotes(text: str) -> bool:
    """Returns whether the text would be read as another type, or seem empty, without quotes."""
    return text.strip() != text or not text or text in {"true", "false", "null"} or bool(FLOAT.match(text))


def shorten(text: str, longest: int = LONGEST_VALUE) -> str:
    """Truncates long text."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def printable(text: str) -> str:
    """Escapes control characters, and those that reorder or hide text."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Returns `did you mean ...?` if a known word is close, otherwise the list of known words."""
    names = sorted(known)
    synonyms = meant_by(word, names)
    if synonyms:
        return f"did you mean {' or '.join(f'`{name}`' for name in synonyms)}?"
    # Lower case: keys are, and a wrong case is a common slip.
    close = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"known are {enumerated(names)}" if names else "no key is known here"


def enumerated(names: Sequence[str]) -> str:
    """Joins names as `a, b, c`."""
    return ", ".join(names)


def rule_of(error: dict[str, Any]) -> str:
    """Translates one pydantic error into a rule of our wording."""
    context = error.get("ctx", {})
    rule = _RULES.get(error["type"])
    # Integers of 19 digits or more are read as floats: they are whole, but too large.
    if error["type"] in ("int_type", "int_from_float") and _is_huge(error.get("input")):
        return "is too large; whole numbers have at most 18 digits"
    if error["type"] == "literal_error":
        # pydantic quotes words and writes Python's True; scenario files have true.
        words: str = context["expected"].replace("'", "`")
        return f"must be {words.replace('True', 'true').replace('False', 'false')}"
    if rule is not None:
        return rule.format(**context)
    if error["type"] == "value_error":
        return str(context["error"])
    message: str = error["msg"]
    return message[:1].lower() + message[1:]


def _is_huge(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value) and abs(value) >= 1e18


_RULES = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than": "must be > {gt}",
    "greater_than_equal": "must be >= {ge}",
    "less_than": "must be < {lt}",
    "less_than_equal": "must be <= {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "list_type": "must be a list; write for example `[1, 2]`",
    "tuple_type": "must be a list; write for example `[1, 2]`",
    "dict_type": "must be a mapping of keys to values",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "none_required": "must be `none`",
    "missing": "is one entry short",
}


def _compact(value: object) -> str:
    # Only the first 20 entries: the text is shortened anyway, and a list may be very long.
    if isinstance(value, bool) or value is None:
        return "none" if value is None else str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_compact(item) for item in value[:20])}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_compact(item)}" for key, item in list(value.items())[:20]) + "}"
    return str(value) if not isinstance(value, int) or abs(value) < 10**100 else "a very large number"
