"""Pivots the rows of a sweep: figures by axes, over seeds the mean with its 95% interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.problems import shorten, suggestion
from scenarios.metrics import comparison
from scenarios.metrics.comparison import FIGURES, clipped, interval
from scenarios.sweeps.sweep_file import value_text

Row = Mapping[str, Any]
ANSWER = ("accuracy", "published", "worst_peer", "model", "client_median", "simulated_s")
"""The figures shown first."""
INTERVALS = (
    "Mean and half of the 95% interval (Student's t) over seeds; both ends where they were cut to the figure's range."
)
_BEFORE_AXES = ("cell", "base")


def axes_of(row: Row) -> list[str]:
    """Returns the columns between base and seed: the axes of the sweep."""
    names = list(row)
    # The table has its columns in this order; see `SweepFolder`.
    return [name for name in names[: names.index("seed")] if name not in _BEFORE_AXES]


def combinations(rows: Sequence[Row], axes: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    """Groups rows by the texts of these axes, in the order of the rows; seeds of one combination are one group."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(axis_text(row[axis]) for axis in axes), []).append(row)
    return groups


def axis_text(value: Any) -> str:
    """Returns an axis value as text; a base that does not have the axis has none."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else value_text(value)


def bounded_interval(figure: str, values: Sequence[float | None]) -> dict[str, Any]:
    """Returns mean and 95% interval, cut to the range that the quantity can take."""
    return clipped(figure, interval(values))


def cell_text(figure: str, values: Sequence[float | None]) -> str:
    """Returns the mean over seeds with its interval, or the one value."""
    return comparison.cell_text(figure, bounded_interval(figure, values))


def answer_tables(rows: Sequence[Row], at_once: int, most: int) -> Iterator[list[tuple[str, ...]]]:
    """Yields the headline of the first combinations as lines of text: tables of so many figures at once."""
    done = [row for row in rows if row["state"] == "done"]
    if not done:
        return
    axes = ["base", *axes_of(done[0])]
    # Axes of one value would repeat it in every line.
    shown = [name for name in axes if len({axis_text(row[name]) for row in done}) > 1] or ["base"]
    figures = [name for name in ANSWER if any(row[name] is not None for row in done)]
    groups = combinations(done, shown)
    more = [(f"and {len(groups) - most} more combinations; `peerveil table` has all",)] if len(groups) > most else []
    head = ", ".join(name.rpartition(".")[2] for name in shown)
    for start in range(0, len(figures), at_once):
        part = figures[start : start + at_once]
        lines = [_answer_line(texts, group, part) for texts, group in list(groups.items())[:most]]
        yield [(head, "seeds", *(FIGURES[name].label for name in part)), *lines, *more]


def _answer_line(texts: Sequence[str], group: Sequence[Row], figures: Sequence[str]) -> tuple[str, ...]:
    cells = [cell_text(name, [row[name] for row in group]) for name in figures]
    # One column for all axes: with a column each, 80 characters would break every word.
    return (", ".join(shorten(text, 30) for text in texts), str(len(group)), *cells)


@dataclass(frozen=True, slots=True)
class Pivot:
    """A table of one figure: rows and columns are combinations of axes, cells are values over seeds.

    Attributes:
        figure: the figure's key
        rows: axes of the rows
        columns: axes of the columns
        averaged: axes that are neither, over whose values each cell is taken too
        cells: values by row and column
    """

    figure: str
    rows: Sequence[str]
    columns: Sequence[str]
    averaged: Sequence[str]
    cells: Mapping[tuple[str, ...], Mapping[tuple[str, ...], list[float | None]]]

    def lines(self) -> tuple[list[str], list[list[str]]]:
        """Returns the heads of the columns, and the lines of text."""
        columns = list(dict.fromkeys(column for cells in self.cells.values() for column in cells))
        head = [" ".join(name.rpartition(".")[2] for name in self.rows), *(" ".join(column) for column in columns)]
        if not self.columns:
            head = [head[0], FIGURES[self.figure].label]
        body = [
            [" ".join(row), *(cell_text(self.figure, cells[column]) if column in cells else "-" for column in columns)]
            for row, cells in self.cells.items()
        ]
        return head, body


def pivot(rows: Sequence[Row], figure: str, down: Sequence[str], across: Sequence[str]) -> Pivot:
    """Pivots finished cells; axes may be named by their last part.

    Raises:
        UserError: there is no such figure or axis, or no cell has finished.
    """
    done = [row for row in rows if row["state"] == "done"]
    if not done:
        raise UserError("no cell has finished; `peerveil sweep --status` says where the sweep stands")
    if figure not in FIGURES:
        raise UserError(f"--figure = {figure}: is unknown; {suggestion(figure, FIGURES)}")
    axes = ["base", *axes_of(done[0])]
    # An axis with one value tells nothing: it is neither shown nor counted as averaged over.
    varying = [name for name in axes if len({axis_text(row[name]) for row in done}) > 1]
    chosen_rows = [_axis(name, axes, "--rows") for name in down]
    chosen_columns = [_axis(name, axes, "--columns") for name in across]
    free = [name for name in varying if name not in (*chosen_rows, *chosen_columns)]
    if not chosen_rows:
        chosen_rows = free[:1] or ["base"]
    # Rows that were asked for alone are wanted as a list, not as a table.
    if not chosen_columns and not down:
        chosen_columns = [name for name in free if name not in chosen_rows][:1]
    cells: dict[tuple[str, ...], dict[tuple[str, ...], list[float | None]]] = {}
    for row in done:
        line = cells.setdefault(tuple(axis_text(row[name]) for name in chosen_rows), {})
        line.setdefault(tuple(axis_text(row[name]) for name in chosen_columns), []).append(row[figure])
    averaged = [name for name in free if name not in (*chosen_rows, *chosen_columns)]
    return Pivot(figure, chosen_rows, chosen_columns, averaged, cells)


def _axis(name: str, axes: Sequence[str], option: str) -> str:
    found = [axis for axis in axes if name in (axis, axis.rpartition(".")[2])]
    if len(found) != 1:
        cure = f"is {' or '.join(found)}; write one in full" if found else suggestion(name, axes)
        raise UserError(f"{option} = {name}: no axis is called so; {cure}")
    return found[0]
