"""Console output at the end of a run: plain text, readable at 80 columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from scenarios.loading.problems import printable
from scenarios.metrics.comparison import FIGURES, cell_text, compare, difference_text
from scenarios.metrics.headline.headline import TRANSPORT_ASSUMED
from scenarios.metrics.headline.headline_rows import headline_rows

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS_AT_ONCE = 3
"""Scenarios per comparison table; 80 columns hold no more intervals."""


def print_headline(summary: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Prints the final table of one run."""
    console = make_console(file)
    console.print(printable(f"{summary['scenario']}, seed {summary['seed']}: {rounds_text(summary)}"))
    print_rows(console, [("", label, text) for label, text in headline_rows(summary)])


def rounds_text(summary: Mapping[str, Any]) -> str:
    """Returns how many rounds were held and lost, and why the run ended."""
    done, lost = summary["rounds_completed"], (summary.get("headline") or {}).get("rounds_lost") or 0
    rounds = f"{done} of {summary.get('rounds_planned', '?')} rounds"
    if lost:
        rounds += ", all of them lost" if lost == done else f", {lost} of them lost"
    return f"{rounds}, {summary['stopped_because']}"


def print_notes(path: Path, notes: Iterable[str]) -> None:
    """Prints to stderr what is missing or damaged in a run folder, a line each."""
    for note in notes:
        print(printable(f"RUN = {path}: {note}"), file=sys.stderr)


def print_comparison(summaries: Sequence[Mapping[str, Any]], file: TextIO | None = None) -> None:
    """Prints several runs side by side; over seeds the mean with its 95% interval, and paired differences."""
    console, compared = make_console(file), compare(summaries)
    labels = list(compared["scenarios"])
    for start in range(0, len(labels), _COLUMNS_AT_ONCE):
        _print_columns(console, compared, labels[start : start + _COLUMNS_AT_ONCE])
    for found in compared["differences"]:
        _print_difference(console, found)
    if any(summary["headline"].get("transport") == TRANSPORT_ASSUMED for summary in summaries):
        console.print(TRANSPORT_ASSUMED)


def _print_columns(console: Console, compared: Mapping[str, Any], labels: list[str]) -> None:
    columns = [compared["scenarios"][label] for label in labels]
    seeds = [_seeds_text(column["seeds"]) for column in columns]
    rows = [("", *(printable(label) for label in labels)), ("", *seeds)]
    for key, figure in FIGURES.items():
        cells = [column["figures"][key] for column in columns]
        if any(cell["n"] for cell in cells):
            rows.append((figure.label, *(cell_text(key, cell) for cell in cells)))
    print_rows(console, [("", *row) for row in rows])
    console.print()


def _print_difference(console: Console, found: Mapping[str, Any]) -> None:
    title = f"{found['scenario']} minus {found['against']}, paired on {_seeds_text(found['seeds'])}"
    console.print(printable(title))
    rows = [
        (
            "",
            FIGURES[key].label,
            difference_text(key, cell),
            "" if cell["low"] is None or cell["low"] <= 0 <= cell["high"] else "*",
        )
        for key, cell in found["figures"].items()
        # Rows that are zero throughout are left out.
        if cell["mean"] is not None and any(cell[end] for end in ("mean", "low", "high"))
    ]
    print_rows(console, rows or [("", "no difference in any figure")])
    if any(row[-1] for row in rows):
        console.print("* the 95% interval leaves out zero (each line for itself)")
    console.print()


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds, mean ± 95%"


def make_console(file: TextIO | None) -> Console:
    """Returns a console that prints text literally, without markup, highlighting or emoji."""
    from rich.console import Console

    return Console(file=file, markup=False, highlight=False, emoji=False)


def print_rows(console: Console, rows: Sequence[tuple[str, ...]]) -> None:
    """Prints rows in aligned columns; the last column may wrap."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in rows[0] if rows else ():
        # A long word goes on in the next line: names that end in dots cannot be told apart.
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
