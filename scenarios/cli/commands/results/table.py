"""`peerveil table RUN...`: a table of figures for a paper, as Markdown, CSV or LaTeX.

One column per scenario (mean and 95% interval over its seeds), one row per figure that at least one of them has.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.cli.commands.results.latex_table import Style, latex_table, latex_text
from scenarios.cli.console import print_notes
from scenarios.loading.problems import printable, suggestion
from scenarios.metrics.comparison import FIGURES, cell_text, compare, unit_of
from scenarios.metrics.headline.headline import TRANSPORT_ASSUMED
from scenarios.metrics.privacy.view_labels import reasons, view_labels
from scenarios.report.data.run_data import read_run_data
from scenarios.run_folder import atomic_write
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.reader import explaining_damage
from scenarios.sweeps.pivot import INTERVALS, Pivot, bounded_interval, pivot
from scenarios.sweeps.read_sweep import is_sweep, read_sweep

_MARKDOWN = "\\`*_{}[]<>#|"


def run(args: argparse.Namespace) -> int:
    """Prints or writes the table."""
    if any(is_sweep(path) for path in args.runs):
        return _sweep_table(args)
    if args.columns or args.figure:
        raise UserError("--columns and --figure: pivot a sweep; give the folder of one")
    summaries = with_distinct_names(args.runs, [_summary(path) for path in args.runs])
    with explaining_damage(args.runs[0] if len(args.runs) == 1 else Path("one of them")):
        made = to_json(compare(summaries)) if args.json else _made(args, summaries)
    return _put(args, made)


def with_distinct_names(paths: Sequence[Path], summaries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Adds its folder to the name of a run that shares scenario and seed with another, as alternatives do."""
    twins = Counter((one["scenario"], one["seed"]) for one in summaries)
    return [
        {**one, "scenario": f"{one['scenario']} ({path.name})"} if twins[one["scenario"], one["seed"]] > 1 else one
        for path, one in zip(paths, summaries, strict=True)
    ]


def _made(args: argparse.Namespace, summaries: Sequence[Mapping[str, Any]]) -> str:
    style = Style(args.caption, args.label, args.siunitx)
    if args.format != "latex" and style != Style():
        raise UserError(f"--format = {args.format}: has no caption, label or siunitx; add --format latex")
    if args.format == "csv":
        return comma_separated(summaries)
    rows = _names(args.rows)
    return latex(summaries, rows, style) if args.format == "latex" else markdown(summaries, rows)


def _put(args: argparse.Namespace, made: str) -> int:
    if args.out is None:
        print(made, end="")
    else:
        atomic_write.write_text(args.out, made)
    return 0


def _sweep_table(args: argparse.Namespace) -> int:
    """Pivots a sweep: one figure by rows and columns of axes, over seeds the mean and half of the 95% interval."""
    if len(args.runs) > 1:
        raise UserError(f"{args.runs[0]}: a sweep is pivoted alone; give one folder")
    table = read_sweep(args.runs[0])
    made = pivot(table.rows, args.figure or "accuracy", _names(args.rows), _names(args.columns))
    if args.json:
        cells = [
            {"row": row, "column": column, **bounded_interval(made.figure, values)}
            for row, line in made.cells.items()
            for column, values in line.items()
        ]
        about = {"figure": made.figure, "rows": made.rows, "columns": made.columns, "averaged": made.averaged}
        return _put(args, to_json({**about, "cells": cells}))
    return _put(args, _SWEEP_FORMATS[args.format](made, len(table.rows) - len(table.done)))


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _pivot_notes(made: Pivot, unfinished: int) -> list[str]:
    figure = FIGURES[made.figure].label
    notes = [f"{figure[:1].upper()}{figure[1:]}; columns: {', '.join(made.columns) or 'none'}."]
    notes.append(INTERVALS)
    if made.averaged:
        notes.append(f"Each cell is also over all values of {', '.join(made.averaged)}.")
    return [*notes, f"{unfinished} cells have not finished."] if unfinished else notes


def _pivot_markdown(made: Pivot, unfinished: int) -> str:
    head, rows = made.lines()
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    texts = [line if place == 1 else [_markdown_text(cell) for cell in line] for place, line in enumerate(lines)]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in texts), "", *_pivot_notes(made, unfinished), ""])


def _pivot_latex(made: Pivot, unfinished: int) -> str:
    head, rows = made.lines()
    lines = [" & ".join(latex_text(cell) for cell in row) + r" \\" for row in (head, *rows)]
    notes = [f"% {printable(note)}" for note in _pivot_notes(made, unfinished)]
    begin = rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}"
    return "\n".join(
        [*notes, begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", r"\end{tabular}", ""]
    )


def _pivot_csv(made: Pivot, unfinished: int) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*made.rows, *made.columns, "figure", "unit", "mean", "low", "high", "n"])
    for row, line in made.cells.items():
        for column, values in line.items():
            found = bounded_interval(made.figure, values)
            numbers = ["" if found[end] is None else repr(found[end]) for end in ("mean", "low", "high")]
            # A base that does not have the axis has an empty field.
            texts = ["" if text == "-" else _not_a_formula(text) for text in (*row, *column)]
            writer.writerow([*texts, made.figure, unit_of(made.figure), *numbers, found["n"]])
    return out.getvalue()


_SWEEP_FORMATS: dict[str, Callable[[Pivot, int], str]] = {
    "md": _pivot_markdown,
    "csv": _pivot_csv,
    "latex": _pivot_latex,
}


def _summary(path: Path) -> Mapping[str, Any]:
    """Returns a run's figures; says on stderr what is missing in the folder."""
    with explaining_damage(path):
        found = read_run_data(path)
    # A killed run's figures are computed from its tables: without one of them they would be wrong.
    if found.run.summary is None and found.damage:
        raise UserError([f"RUN = {path}: {note}" for note in (*found.damage, "no figures; run the scenario again")])
    print_notes(path, found.notes)
    return found.summary


def markdown(summaries: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> str:
    """Returns a pipe table, followed by notes on the numbers."""
    head, rows = _cells(summaries, names)
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    texts = [[_markdown_text(cell) for cell in row] for row in rows]
    out = [f"| {' | '.join(line)} |" for line in ([_markdown_text(cell) for cell in lines[0]], lines[1], *texts)]
    return "\n".join([*out, "", *_notes(summaries), ""])


def latex(summaries: Sequence[Mapping[str, Any]], rows: Sequence[str] = (), style: Style | None = None) -> str:
    """Returns a `tabular` with booktabs rules, inside a `table` if it has a caption or a label."""
    columns = compare(summaries)["scenarios"]
    return latex_table(columns, _shown(columns, rows), _notes(summaries), style)


def comma_separated(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Returns one line per scenario and figure at full precision: `scenario,seeds,figure,unit,mean,low,high,n`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["scenario", "seeds", "figure", "unit", "mean", "low", "high", "n"])
    for label, column in compare(summaries)["scenarios"].items():
        seeds = " ".join(str(seed) for seed in column["seeds"])
        for key, cell in column["figures"].items():
            if cell["n"]:
                # repr() keeps all digits, so that the file can be computed with.
                values = ["" if cell[end] is None else repr(cell[end]) for end in ("mean", "low", "high")]
                writer.writerow([_not_a_formula(label), seeds, key, unit_of(key), *values, cell["n"]])
    return out.getvalue()


def _cells(summaries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    columns = compare(summaries)["scenarios"]
    rows = [
        [FIGURES[key].label, *(cell_text(key, column["figures"][key]) for column in columns.values())]
        for key in _shown(columns, names)
    ]
    return ["", *columns], rows


def _shown(columns: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Returns the figures of the table: the named ones, else those that any run has and that are not 0 throughout."""
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise UserError([f"--rows = {name}: unknown figure; {suggestion(name, FIGURES)}" for name in unknown])
    if names:
        return list(names)
    cells = {key: [column["figures"][key] for column in columns.values()] for key in FIGURES}
    return [key for key, row in cells.items() if any(cell["n"] and cell["mean"] != 0 for cell in row)]


def _notes(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    columns = compare(summaries)["scenarios"]
    notes = []
    if any(len(column["seeds"]) > 1 for column in columns.values()):
        notes.append(INTERVALS)
    for one in summaries:
        labels = view_labels((one.get("privacy") or {}).get("rigorous") or {})
        figures = ", ".join(f"{label.name} {label.figure}" for label in labels)
        if labels:
            about = f"Rigorous epsilons of {one['scenario']}, seed {one['seed']}: {figures}"
            notes.append(". ".join([about, *reasons(labels)]) + ".")
    assuming = [one["scenario"] for one in summaries if one["headline"].get("transport") == TRANSPORT_ASSUMED]
    if assuming:
        # Named only if some of the runs count the transport's cost.
        which = "" if len(assuming) == len(summaries) else f" ({', '.join(dict.fromkeys(assuming))})"
        notes.append(f"{TRANSPORT_ASSUMED.capitalize()}{which}.")
    return notes


def _markdown_text(content: str) -> str:
    return "".join(f"\\{char}" if char in _MARKDOWN else char for char in printable(content))


def _not_a_formula(content: str) -> str:
    """Quotes text that a spreadsheet would evaluate as a formula; negative numbers are none."""
    return f"'{content}" if content[:1] in {"=", "+", "-", "@"} and not _is_number(content) else content


def _is_number(content: str) -> bool:
    try:
        float(content)
    except ValueError:
        return False
    return True
