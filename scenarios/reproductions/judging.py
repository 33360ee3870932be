"""Judges the cells of a sweep by a rule: paired differences over seeds with 95% intervals.

Kinds of statements: `order` (one setting above another, by at least `by`), `argmax` (one value of an axis is best),
`monotone` (along an axis), `below` and `above` (a figure against a constant), `close` (two settings differ by at most a
constant), `interior` (the best value of an axis is not at its ends), `shift` (the best value of an axis moves up),
`near_best` (a setting is at most a constant worse than the best value of an axis). The best is the largest, or the
smallest with `least: true`. Each interval is for itself; with many statements some will fail by chance.

A statement with a `reading` counts for that reading of the paper only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from p2p.config.errors import UserError
from scenarios.metrics.comparison import interval
from scenarios.reproductions.margins import decide, number, spread
from scenarios.reproductions.pictures import setting_text
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
        # The first that ends so; a rule names more of the path where two axes end alike.
        found = [value for path, value in self.settings.items() if name in (path, path.rpartition(".")[2])]
        return _text(found[0]) if found else "-"


def judge_parts(parts: Sequence[Mapping[str, Any]], cells_of: Callable[[str | None], Sequence[Measured]]) -> list[Part]:
    """Returns every statement of the rule with what was measured; a statement may have a figure of its own."""
    return [
        replace(part, reading=one.get("reading", ""))
        for one in parts
        for part in KINDS[one["kind"]](one, cells_of(one.get("figure")))
    ]


def _order(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    by = float(one.get("by", 0.0))
    least = f" by at least {by:g}" if by else ""
    statement = f"{_what(one)}{_words(one['greater'])} is above {_words(one['less'])}{least}{_where(one)}"
    return [_compare(statement, _select(cells, one, one["greater"]), _select(cells, one, one["less"]), by)]


def _argmax(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    axis, at = one["over"], one["at"]
    best = _select(cells, one, {axis: at})
    others = [value for value in one["among"] if _text(value) != _text(at)]
    return [
        _compare(
            f"{_what(one)}{axis} {setting_text(at)} is above {setting_text(value)}{_where(one)}",
            best,
            _select(cells, one, {axis: value}),
        )
        for value in others
    ]


def _monotone(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    axis, up = one["over"], one["direction"] == "up"
    parts = []
    for low, high in pairwise(one["among"]):
        side = "above" if up else "below"
        statement = f"{_what(one)}{axis} {setting_text(high)} is {side} {setting_text(low)}{_where(one)}"
        first, second = _select(cells, one, {axis: low}), _select(cells, one, {axis: high})
        parts.append(_compare(statement, second, first) if up else _compare(statement, first, second))
    return parts


def _bound(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    below, limit = one["kind"] == "below", float(one["value"])
    values = list(_select(cells, one, {}).values())
    found = interval(values)
    statement = f"{one.get('what', 'the figure')} is {one['kind']} {limit:g}{_where(one)}"
    # `decide` wants positive numbers where the statement holds.
    sign = 1.0 if below else -1.0
    return [decide(statement, [sign * (limit - value) for value in values], f"mean {number(found['mean'])}")]


def _close(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    first, second = _select(cells, one, one["first"]), _select(cells, one, one["second"])
    differences = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    statement = f"{_words(one['second'])} loses at most {one['value']:g} to {_words(one['first'])}{_where(one)}"
    return [decide(statement, [one["value"] - difference for difference in differences], spread(differences))]


def _interior(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    """The value inside the range with the best mean must be better than both ends."""
    first, *middle, last = one["among"]
    inside = {_text(value): _oriented(cells, one, {one["over"]: value}) for value in middle}
    # Chosen by its mean over seeds, which favours the claim; both ends are then compared with this one value.
    best = max(inside, key=lambda text: _mean(inside[text]))
    return [
        _compare(
            f"{_what(one)}{one['over']} {best} is better than {setting_text(end)}{_where(one)}",
            inside[best],
            _oriented(cells, one, {one["over"]: end}),
        )
        for end in (first, last)
    ]


def _shift(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    """Each seed has its own best value; its place among the values must be later with `high` than with `low`."""
    low, high = (_best_places(one, cells, one[side]) for side in ("low", "high"))
    statement = (
        f"{_what(one)}the best {one['over']} is larger with {_words(one['high'])} than with {_words(one['low'])}"
    )
    moves = [float(high[seed] - low[seed]) for seed in sorted(low.keys() & high.keys())]
    return [decide(f"{statement}{_where(one)}", moves, f"places among {len(one['among'])}: {spread(moves)}")]


def _best_places(one: Mapping[str, Any], cells: Sequence[Measured], where: Mapping[str, Any]) -> dict[int, int]:
    columns = [_oriented(cells, one, {**where, one["over"]: value}) for value in one["among"]]
    # A seed that lacks a value has no best one.
    seeds = set(columns[0]).intersection(*columns[1:])
    # On a tie the first value, in the order of the rule.
    return {seed: max(range(len(columns)), key=lambda place: columns[place][seed]) for seed in seeds}


def _near_best(one: Mapping[str, Any], cells: Sequence[Measured]) -> list[Part]:
    others = {_text(value): _oriented(cells, one, {**one["of"], one["over"]: value}) for value in one["among"]}
    best = max(others, key=lambda text: _mean(others[text]))
    mine = _oriented(cells, one, one["setting"])
    losses = [others[best][seed] - mine[seed] for seed in sorted(mine.keys() & others[best].keys())]
    statement = f"{_what(one)}{_words(one['setting'])} is at most {one['value']:g} worse than {one['over']} {best}"
    return [decide(f"{statement}{_where(one)}", [one["value"] - loss for loss in losses], spread(losses))]


def _oriented(cells: Sequence[Measured], one: Mapping[str, Any], where: Mapping[str, Any]) -> dict[int, float]:
    """Returns the values by seed, negated if the least is best."""
    sign = -1.0 if one.get("least") else 1.0
    return {seed: sign * value for seed, value in _select(cells, one, where).items()}


def _mean(values: Mapping[int, float]) -> float:
    # A value without cells is never the best.
    return sum(values.values()) / len(values) if values else -math.inf


KINDS: dict[str, Callable[[Mapping[str, Any], Sequence[Measured]], list[Part]]] = {
    "order": _order,
    "argmax": _argmax,
    "monotone": _monotone,
    "below": _bound,
    "above": _bound,
    "close": _close,
    "interior": _interior,
    "shift": _shift,
    "near_best": _near_best,
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


def _compare(statement: str, above: Mapping[int, float], below: Mapping[int, float], by: float = 0.0) -> Part:
    seeds = sorted(above.keys() & below.keys())
    # Paired: both settings of a seed share data, links and cohorts, so what they have in common cancels.
    differences = [above[seed] - below[seed] for seed in seeds]
    return decide(statement, [difference - by for difference in differences], spread(differences))


def _what(one: Mapping[str, Any]) -> str:
    return f"{one['what']}: " if "what" in one else ""


def _words(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {setting_text(value)}" for name, value in where.items())


def _where(one: Mapping[str, Any]) -> str:
    return f" ({_words(one['where'])})" if one.get("where") else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value_text(value)
