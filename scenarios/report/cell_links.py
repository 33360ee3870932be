"""Links from the page of a sweep to its runs, and the table of its finished cells."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scenarios.report import html
from scenarios.sweeps.pivot import axis_text
from scenarios.sweeps.read_sweep import CELL_PAGE, SweepTable


def cell_link(sweep: SweepTable, row: Mapping[str, Any], page_folder: Path) -> dict[str, str | None]:
    """Returns where a click on a cell leads: to the page of its run, or to its row on this page if it has none."""
    page = sweep.path / str(row["folder"]) / CELL_PAGE
    return {"page": _href(page, page_folder) if page.is_file() else None, "row": f"cell-{str(row['cell'])[:16]}"}


def cell_words(sweep: SweepTable, row: Mapping[str, Any]) -> str:
    """Returns a cell in words: base, the values of its axes, seed."""
    return ", ".join([str(row["base"]), *(axis_text(row[name]) for name in sweep.axes), f"seed {row['seed']}"])


def cells_section(sweep: SweepTable, page_folder: Path) -> str:
    """Returns the table of finished cells, each with its page and its folder."""
    rows = "".join(_row(sweep, row, page_folder) for row in sweep.done)
    head = '<tr><th scope="col">cell</th><th scope="col">accuracy</th><th scope="col" class="path">folder</th></tr>'
    table = f'<table class="figures pinned"><thead>{head}</thead><tbody>{rows}</tbody></table>'
    missing = sum(cell_link(sweep, row, page_folder)["page"] is None for row in sweep.done)
    hint = f"Runs without a page: {missing}. `peerveil report` makes them: of a folder, or of the sweep for all."
    note = html.paragraph(hint, "hint") if missing else ""
    return html.section("cells", "Cells", note, f'<div class="scroll">{table}</div>')


def _row(sweep: SweepTable, row: Mapping[str, Any], page_folder: Path) -> str:
    link = cell_link(sweep, row, page_folder)
    words = html.text(cell_words(sweep, row))
    name = f"{words} (no page)" if link["page"] is None else f'<a href="{html.text(link["page"])}">{words}</a>'
    accuracy = "-" if row["accuracy"] is None or math.isnan(row["accuracy"]) else f"{row['accuracy']:.3f}"
    listing = html.text(f"{_href(sweep.path / str(row['folder']), page_folder)}/")
    folder = f'<td class="path"><a href="{listing}">{html.text(row["folder"])}</a></td>'
    return f'<tr id="{html.text(link["row"])}"><th scope="row">{name}</th><td>{accuracy}</td>{folder}</tr>'


def _href(path: Path, page_folder: Path) -> str:
    return quote(os.path.relpath(path, page_folder))
