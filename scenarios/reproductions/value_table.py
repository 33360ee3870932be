"""Printed beside measured values: a row per setting, and a column per reading of what the paper leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.reproductions.judging import Measured
from scenarios.reproductions.pictures import setting_text
from scenarios.reproductions.rule_file import rules

Where = Mapping[str, Any]


def value_table(outcome: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Returns the heads of the measured columns, and rows of settings, printed value and measured values."""
    values, readings = outcome["values"], _readings(outcome["id"])
    named = [_reading_of(row, readings) for row in values]
    own = {name for where in readings.values() for name in where}
    places = {(name, _words(row, own)) for row, name in zip(values, named, strict=True)}
    if len(readings) < 2 or None in named or len(places) < len(values):
        # Nothing was left open, or some cells have no place of their own: one column.
        readings, named, own = {"": {}}, [""] * len(values), set()
    lines: dict[str, list[str]] = {}
    for row, name in zip(values, named, strict=True):
        line = lines.setdefault(_words(row, own), [printed_text(row["printed"]), *["-"] * len(readings)])
        line[1 + list(readings).index(str(name))] = interval_text(row)
    heads = [f"measured [{name}]" if name else "measured" for name in readings]
    return heads, [[words, *line] for words, line in lines.items()]


def printed_text(value: float | None) -> str:
    """Returns a printed value, or a dash where the paper has only a curve."""
    return "-" if value is None else f"{value:g}"


def interval_text(row: Mapping[str, Any]) -> str:
    """Returns `mean (low to high)`."""
    if row["mean"] is None:
        return "-"
    if row["low"] is None:
        return f"{row['mean']:.4g}"
    return f"{row['mean']:.4g} ({row['low']:.4g} to {row['high']:.4g})"


def _readings(name: str) -> dict[str, Where]:
    """Returns the readings of a rule with the settings that all statements about each have."""
    found: dict[str, Where] = {}
    for part in rules()[name].parts if name in rules() else ():
        reading = part.get("reading")
        if reading:
            where = _settings(part)
            known = found.get(reading, where)
            found[reading] = {key: value for key, value in known.items() if where.get(key) == value}
    return found


def _settings(part: Mapping[str, Any]) -> Where:
    greater, less = part.get("greater") or {}, part.get("less") or {}
    both = {key: value for key, value in greater.items() if less.get(key) == value}
    return {**(part.get("where") or {}), **both}


def _reading_of(row: Mapping[str, Any], readings: Mapping[str, Where]) -> str | None:
    fitting = [name for name, where in readings.items() if where and Measured(row["settings"], 0, None).matches(where)]
    return fitting[0] if len(fitting) == 1 else None


def _words(row: Mapping[str, Any], left_out: set[str]) -> str:
    """Returns the settings in words, such as `base wei-crd, rounds 30`, without those that name a reading."""
    kept = [(path, path.rpartition(".")[2], value) for path, value in row["settings"].items()]
    return ", ".join(f"{last} {setting_text(value)}" for path, last, value in kept if not {path, last} & left_out)
