"""Changes a scenario's plain values before they are read and checked: `--set a.b=v`, and keywords from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scenarios.loading.problems import Path, Problems, shorten
from scenarios.loading.yaml_text import parse_yaml

NAMED_BY = {"data": "name"}
"""The key that names the chosen part of a section, where it is not `kind`."""


Change = tuple[Path, Any]
"""The path of a key, and its new value."""


def read_overrides(texts: Sequence[str], problems: Problems) -> list[Change]:
    """Reads texts of the form `path=value`, the value as in a scenario file."""
    changes: list[Change] = []
    for text in texts:
        name, equals, value_text = text.partition("=")
        path: Path = tuple(name.strip().split("."))
        if not equals or not all(path):
            problems.add([_bad(text, "must be path=value; write for example `--set rounds=5`")])
            continue
        try:
            changes.append((path, parse_yaml(value_text)))
        except ValueError as reason:
            problems.add([_bad(text, str(reason))])
    return changes


def apply_changes(data: dict[str, Any], changes: Sequence[Change], problems: Problems) -> dict[Path, str]:
    """Sets each path in `data` to its value, in order.

    Returns:
        Every path that was set; for a part whose kind changed, the part's path with its old kind.
    """
    touched: dict[Path, str] = {}
    for path, value in changes:
        # Before the value is set: afterwards the old kind is gone.
        _note_old_kind(data, path, touched)
        # An empty kind: the path was set, and no part changed its kind there.
        touched[path] = ""
        _set(data, path, value, problems)
    return touched


def _set(data: dict[str, Any], path: Path, value: Any, problems: Problems) -> None:
    place: Any = data
    for depth, part in enumerate(path[:-1]):
        key = NAMED_BY.get(str(path[0]), "kind") if depth == 0 else "kind"
        place = _step(place, part, key, of_items=_index(path[depth + 1]) is not None)
        if place is None:
            problems.wrong(path, value, f"`{part}` is not a place to set a key in; set the whole of it")
            return
    last = path[-1]
    if isinstance(place, list):
        _set_item(place, path, value, problems)
    else:
        place[last] = value


def _step(place: Any, part: str | int, key: str, of_items: bool) -> Any:
    """Returns the mapping or list (`of_items`) below `part`, created if absent; None if the place has another type."""
    if isinstance(place, list):
        index = _index(part)
        if index == len(place):
            # One beyond the last makes a new entry; more would leave a gap.
            place.append({})
        return place[index] if index is not None and index < len(place) and _opens(place[index]) else None
    inner = place.get(part)
    # A section that is off by default can be switched on by setting one of its keys.
    if inner is None or inner == "none":
        inner = place[part] = [] if of_items else {}
    elif isinstance(inner, str):
        # A bare name is short for a mapping with only its kind.
        inner = place[part] = {key: inner}
    return inner if _opens(inner) else None


def _set_item(place: list[Any], path: Path, value: Any, problems: Problems) -> None:
    index = _index(path[-1])
    if index is None or index > len(place):
        problems.wrong(path, value, f"must be set at an index from 0 to {len(place)}")
    elif index == len(place):
        place.append(value)
    else:
        place[index] = value


def _note_old_kind(data: dict[str, Any], path: Path, touched: dict[Path, str]) -> None:
    """Records the kind a part had, so that keys only that kind has can be removed after the change."""
    if path[-1] != NAMED_BY.get(str(path[0]), "kind"):
        return
    place: Any = data
    for part in path[:-1]:
        place = place.get(part) if isinstance(place, dict) else None
    old = place.get(path[-1]) if isinstance(place, dict) else place
    if isinstance(old, str):
        # The first old kind is the file's own; later overrides replace each other.
        touched.setdefault(path[:-1], old)


def _opens(value: Any) -> bool:
    return isinstance(value, dict | list)


def _index(part: str | int) -> int | None:
    text = str(part)
    return int(text) if text.isdecimal() and len(text) < 10 else None


def _bad(text: str, rule: str) -> str:
    return f"--set {shorten(text)}: {rule}"
