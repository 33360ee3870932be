"""The axes that the page of a sweep draws, and its finished cells by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.sweeps.pivot import axis_text
from scenarios.sweeps.read_sweep import SweepTable


def drawn_axes(sweep: SweepTable) -> list[tuple[str, ...]]:
    """Returns the axes whose values differ among finished cells; those that move together are one axis."""
    found = [names for names in (("base",), *sweep.groups) if len(by_axes(sweep.done, [names])) > 1]
    return found or [("base",)]


def by_axes(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[tuple[str, ...]]
) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """Groups rows by the texts of these axes; seeds of one combination are one group."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(_text(row, names) for names in axes), []).append(row)
    return groups


def _text(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    # A base that has none of the axes gets one dash: on the page it fits to every value at which the axis is held.
    return "-" if all(row[name] is None for name in names) else ", ".join(axis_text(row[name]) for name in names)


def axis_values(rows: Sequence[Mapping[str, Any]], names: tuple[str, ...]) -> list[str]:
    """Returns the texts of an axis: numbers in order, also where the sweep file lists them otherwise."""
    found = {_text(row, names): row[names[0]] for row in rows}
    if len(names) == 1 and all(isinstance(value, int | float) for value in found.values() if value is not None):
        return sorted(found, key=lambda text: (found[text] is None, found[text] or 0))
    return list(found)
