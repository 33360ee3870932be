"""Judges the cells of a sweep by a rule: paired differences over seeds with 95% intervals.

Kinds of statements: `order` (one setting above another), `argmax` (one value of an axis is best), `monotone` (along an
axis), `below` and `above` (a figure against a constant), `close` (two settings differ by at most a constant).
Each interval is for itself; with many statements some will fail by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from p2p.config.errors import UserError
from scenarios.metrics.comparison import interval
from scenarios.reproductions.verdict import Part
from scenarios.sweeps.sweep_file import value_text


@dataclass(frozen=True, slots=True)
class Measured:
    """The value of one cell, with its settings: base, axes by path, seed."""

    settings: Mapping[str, Any]
    seed: int
    value: float | None

    def matches(self, where: Mapping[str, Any]) -> bool:
        """Returns whether the cell has these settings; axes may be named by their last part."""
        return all(self._text(name) == _text(wanted) for name, wanted in where.items())

    def _text(self, name: str) -> str:
        found = [value for path, value in self.settings.items() if name in (path, path.rpartition(".")[2])]
        return _text(found[0]) if found else "-"


def judge_parts(parts: Sequence[Mapping[str, Any]], cells_of: Callable[[str | None], Sequence[Measured]]) -> list[Part]:
    """Returns every statement of the rule with what was measured; a statement may have a figure of its own."""
    return [part for one in parts for part in KINDS[one["kind"]](one, cells_of(one.get("figure")))]


def _order(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    statement = f"{_words(one['greater'])} is above {_words(one['less'])}{_where(one)}"
    return [_compare(statement, _select(cells, one, one["greater"]), _select(cells, one, one["less"]))]


def _argmax(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    axis, at = one["over"], one["at"]
    best = _select(cells, one, {axis: at})
    others = [value for value in one["among"] if _text(value) != _text(at)]
    return [
        _compare(f"{axis} {_text(at)} is above {_text(value)}{_where(one)}", best, _select(cells, one, {axis: value}))
        for value in others
    ]


def _monotone(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    axis, up = one["over"], one["direction"] == "up"
    parts = []
    for low, high in pairwise(one["among"]):
        statement = f"{axis} {_text(high)} is {'above' if up else 'below'} {_text(low)}{_where(one)}"
        first, second = _select(cells, one, {axis: low}), _select(cells, one, {axis: high})
        parts.append(_compare(statement, second, first) if up else _compare(statement, first, second))
    return parts


def _bound(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    below, limit = one["kind"] == "below", float(one["value"])
    values = list(_select(cells, one, {}).values())
    found = interval(values)
    statement = f"{one.get('what', 'the figure')} is {one['kind']} {limit:g}{_where(one)}"
    sign = 1.0 if below else -1.0
    return [_decide(statement, [sign * (limit - value) for value in values], f"mean {_number(found['mean'])}")]


def _close(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    first, second = _select(cells, one, one["first"]), _select(cells, one, one["second"])
    differences = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    statement = f"{_words(one['second'])} loses at most {one['value']:g} to {_words(one['first'])}{_where(one)}"
    return [_decide(statement, [one["value"] - difference for difference in differences], _spread(differences))]


KINDS: dict[str, Callable[[Mapping[str, Any], Sequence[Measured]], list[Part]]] = {
    "order": _order,
    "argmax": _argmax,
    "monotone": _monotone,
    "below": _bound,
    "above": _bound,
    "close": _close,
}


def _select(cells: Sequence[Measured], one: Mapping[str, Any], where: Mapping[str, Any]) -> dict[int, float]:
    """Returns the values by seed; a rule must leave exactly one cell per seed."""
    wanted = {**one.get("where", {}), **where}
    found: dict[int, float] = {}
    for cell in cells:
        if cell.matches(wanted) and cell.value is not None:
            if cell.seed in found:
                raise UserError(f"rule: {_words(wanted)} names several cells of seed {cell.seed}; name all axes")
            found[cell.seed] = cell.value
    return found


def _compare(statement: str, above: Mapping[int, float], below: Mapping[int, float]) -> Part:
    seeds = sorted(above.keys() & below.keys())
    differences = [above[seed] - below[seed] for seed in seeds]
    return _decide(statement, differences, _spread(differences))


def _decide(statement: str, margins: Sequence[float], measured: str) -> Part:
    """The statement holds if the margin's 95% interval is above zero, fails if it is below, else is open."""
    if not margins:
        return Part(statement, None, "not measured")
    found = interval(list(margins))
    # Without any spread (bytes, exact figures) one seed decides.
    if len(margins) > 1 and float(np.ptp(margins)) == 0.0:
        return Part(statement, margins[0] > 0, measured)
    if found["low"] is None:
        return Part(statement, None, f"{measured}, one seed", 2)
    holds = True if found["low"] > 0 else False if found["high"] < 0 else None
    return Part(statement, holds, measured, None if holds is not None else _seeds_needed(margins))


def _seeds_needed(margins: Sequence[float]) -> int | None:
    """Returns how many seeds would decide, if mean and spread stay as they are; None if the mean is nothing."""
    mean, spread = float(np.mean(margins)), float(np.std(margins, ddof=1))
    return None if mean == 0 else max(len(margins) + 1, math.ceil((2.1 * spread / mean) ** 2) + 1)


def _spread(differences: Sequence[float]) -> str:
    found = interval(list(differences))
    if found["low"] is None:
        return f"difference {_number(found['mean'])}"
    half = (found["high"] - found["low"]) / 2
    return f"difference {_number(found['mean'])} ± {_number(half)} over {found['n']} seeds"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _words(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in where.items())


def _where(one: Mapping[str, Any]) -> str:
    return f" ({_words(one['where'])})" if one.get("where") else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value_text(value)
