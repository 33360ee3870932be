"""The plot of a reproduction: measured means with 95% intervals beside printed values.

Where an axis has three numbers or more, lines over it, one for each combination of the others, as a paper would draw
them; otherwise a row for each combination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D")
"""The next one for each turn of the colours, so that no two lines look alike."""
_LEAST_POINTS = 3
_WIDE = 8.0
"""Axes whose largest value is more than this many times the least are drawn logarithmically."""

Row = Mapping[str, Any]


def draw(outcome: Mapping[str, Any], path: Path) -> None:
    """Draws the measured values of an outcome; printed ones are crosses."""
    import matplotlib as mpl

    # A fixed salt and no date: the same outcome gives the same file.
    with mpl.rc_context({"svg.hashsalt": "peerveil", "font.size": 9}):
        from matplotlib.figure import Figure

        rows = [row for row in outcome["values"] if row["mean"] is not None]
        axis = line_axis(rows)
        lines = _lines(rows, axis) if axis else {}
        height = 4.0 if axis else 1.2 + 0.32 * len(rows)
        figure = Figure(figsize=(7, height + 0.2 * len(lines)), layout="constrained")
        _draw_lines(figure, lines, str(axis), outcome) if axis else _draw_rows(figure, rows, outcome)
        figure.savefig(path, metadata={"Date": None})


def line_axis(rows: Sequence[Row]) -> str | None:
    """Returns the axis that lines are drawn over: that with most numbers, three at least; None if there is none."""
    counts = {name: len(_numbers(rows, name)) for name in _axes(rows)}
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None or counts[best] < _LEAST_POINTS:
        return None
    # Where another axis moves together with it, every line would be a point.
    return best if max(map(len, _lines(rows, best).values())) >= _LEAST_POINTS else None


def _axes(rows: Sequence[Row]) -> dict[str, None]:
    return {name: None for row in rows for name in row["settings"]}


def _numbers(rows: Sequence[Row], name: str) -> set[float]:
    values = [row["settings"].get(name) for row in rows]
    # A base that lacks the axis has no place on it.
    fits = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return {float(value) for value in values} if fits else set()


def _lines(rows: Sequence[Row], axis: str) -> dict[str, list[Row]]:
    lines: dict[str, list[Row]] = {}
    for row in rows:
        others = {name: value for name, value in row["settings"].items() if name != axis}
        lines.setdefault(_label(others), []).append(row)
    return {label: sorted(line, key=lambda row: row["settings"][axis]) for label, line in lines.items()}


def _draw_lines(figure: Any, lines: Mapping[str, Sequence[Row]], axis: str, outcome: Mapping[str, Any]) -> None:
    plot = figure.add_subplot()
    for (label, line), (marker, colour) in zip(lines.items(), product(_MARKERS, _COLOURS), strict=False):
        x, mean = [row["settings"][axis] for row in line], [row["mean"] for row in line]
        ends = [_ends(row) for row in line]
        spread = [[m - low for m, (low, _) in zip(mean, ends, strict=True)]]
        spread.append([high - m for m, (_, high) in zip(mean, ends, strict=True)])
        plot.errorbar(x, mean, yerr=spread, fmt=f"{marker}-", color=colour, capsize=2, markersize=4, label=label)
        printed = [(row["settings"][axis], row["printed"]) for row in line if row["printed"] is not None]
        if printed:
            plot.plot(*zip(*printed, strict=True), "x--", color=colour, alpha=0.6)
    values = [row["settings"][axis] for line in lines.values() for row in line]
    if min(values) > 0 and max(values) > _WIDE * min(values):
        plot.set_xscale("log")
    plot.set_xlabel(axis)
    plot.set_ylabel(_caption(outcome))
    plot.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize=8)


def _draw_rows(figure: Any, rows: Sequence[Row], outcome: Mapping[str, Any]) -> None:
    plot = figure.add_subplot()
    for place, row in enumerate(rows):
        plot.plot(list(_ends(row)), [place, place], color=_COLOURS[0], linewidth=1.6)
        plot.plot([row["mean"]], [place], "o", color=_COLOURS[0])
        if row["printed"] is not None:
            plot.plot([row["printed"]], [place], "x", color=_COLOURS[1])
    plot.set_yticks(range(len(rows)), [_label(row["settings"]) for row in rows])
    # Half a row of room, so that the first and last marks are whole.
    plot.set_ylim(len(rows) - 0.5, -0.5)
    # Of the whole figure: beside long names the axis is shorter than its caption.
    figure.supxlabel(_caption(outcome), fontsize="medium")
    plot.grid(axis="x", alpha=0.3)


def _caption(outcome: Mapping[str, Any]) -> str:
    printed = any(row["printed"] is not None for row in outcome["values"])
    return f"{outcome['figure'][:60]}\nmeasured with 95% interval{'; crosses: printed' if printed else ''}"


def _ends(row: Row) -> tuple[float, float]:
    return (row["mean"], row["mean"]) if row["low"] is None else (row["low"], row["high"])


def _label(settings: Mapping[str, Any]) -> str:
    words = [
        setting_text(value) if name == "base" else f"{name.rpartition('.')[2]} {setting_text(value)}"
        for name, value in settings.items()
    ]
    return ", ".join(words)[:90]


def setting_text(value: Any) -> str:
    """Returns a setting in a few words: `crd 0.9 floor` for a schedule with its keys."""
    if isinstance(value, list):
        return " + ".join(setting_text(part) for part in value) or "none"
    if isinstance(value, Mapping):
        return " ".join(str(part) for part in value.values() if not isinstance(part, Mapping))
    return str(value)
