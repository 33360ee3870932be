"""A LaTeX table of runs, ready for a paper: booktabs rules, caption and label, numbers by siunitx if asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.loading.problems import printable
from scenarios.metrics.comparison import FIGURES, cell_text, is_clipped, unit_of

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
_PREFIXES = (("", 1.0), (r"\kilo", 1e3), (r"\mega", 1e6), (r"\giga", 1e9), (r"\tera", 1e12))


@dataclass(frozen=True, slots=True)
class Style:
    """How the table is written.

    Attributes:
        caption, label: put the tabular into a `table` with these; either may be missing.
        siunitx: write numbers as `\\num` and `\\qty` of that package.
    """

    caption: str | None = None
    label: str | None = None
    siunitx: bool = False


def latex_table(
    columns: Mapping[str, Any], keys: Sequence[str], notes: Sequence[str], style: Style | None = None
) -> str:
    """Returns the table of these figures, a column per scenario."""
    how = style or Style()
    write = siunitx_text if how.siunitx else lambda key, cell: latex_text(cell_text(key, cell))
    rows = [" & ".join(["", *(latex_text(label) for label in columns)]) + r" \\"]
    for key in keys:
        cells = [write(key, column["figures"][key]) for column in columns.values()]
        rows.append(" & ".join([_row_label(FIGURES[key].label), *cells]) + r" \\")
    return "\n".join([*(f"% {printable(note)}" for note in notes), *_wrapped(rows, len(columns), how), ""])


def _wrapped(rows: Sequence[str], columns: int, style: Style) -> list[str]:
    tabular = [
        rf"\begin{{tabular}}{{l{'r' * columns}}}",
        *(r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"),
        r"\end{tabular}",
    ]
    if style.caption is None and style.label is None:
        return tabular
    more = [r"\begin{table}", r"\centering"]
    more += [rf"\caption{{{latex_text(style.caption)}}}"] if style.caption is not None else []
    # A label names no text, so it is written as it is, without what would end it.
    more += [rf"\label{{{_label(style.label)}}}"] if style.label is not None else []
    return [*more, *tabular, r"\end{table}"]


def _label(text: str) -> str:
    return "".join(char for char in printable(text) if char not in "\\{}%#&$~^_")


def _row_label(label: str) -> str:
    return latex_text(label).replace("epsilon", r"$\varepsilon$")


def latex_text(content: str) -> str:
    """Escapes text for LaTeX."""
    return "".join(_LATEX.get(char, char) for char in printable(content))


def siunitx_text(key: str, cell: Mapping[str, Any]) -> str:
    """Returns a figure as `\\num` or `\\qty`, with its uncertainty where there is one."""
    mean = cell["mean"]
    if mean is None:
        return "--"
    if math.isinf(mean):
        return r"$\infty$"
    scale, unit, digits = _scale(key, float(mean))
    if cell["low"] is None:
        return _command(digits(mean / scale), unit)
    if is_clipped(key, cell):
        ends = (_command(digits(cell[end] / scale), unit) for end in ("low", "high"))
        return f"{_command(digits(mean / scale), unit)} ({' to '.join(ends)})"
    half = (cell["high"] - cell["low"]) / 2
    return _command(rf"{digits(mean / scale)} \pm {digits(half / scale)}", unit)


def _command(number: str, unit: str) -> str:
    return rf"\qty{{{number}}}{{{unit}}}" if unit else rf"\num{{{number}}}"


def _scale(key: str, mean: float) -> tuple[float, str, Callable[[float], str]]:
    """Returns the factor, the unit and the format of a figure's numbers."""
    unit = unit_of(key)
    if unit == "bytes":
        prefix, scale = [one for one in _PREFIXES if abs(mean) >= one[1] or one[1] == 1.0][-1]
        return scale, rf"{prefix}\byte", lambda value: f"{value:.3g}"
    if unit == "s":
        return 1.0, r"\second", lambda value: f"{value:.4g}"
    if FIGURES[key].text.__name__ == "share_text":
        return 0.01, r"\percent", lambda value: f"{value:.3g}"
    if unit == "share":
        return 1.0, "", lambda value: f"{value:.3f}"
    return 1.0, "", lambda value: f"{value:.3g}" if abs(value) < 1e6 else f"{value:.2e}"
