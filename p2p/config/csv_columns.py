"""Quantities from a column of a CSV file, checked line by line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from p2p.config.errors import UserError
from p2p.config.units import Unit


def read_column(path: Path, column: str, unit: Unit) -> list[float]:
    """Returns the quantities of a column; a cell may have a unit.

    Raises:
        UserError: the file cannot be read, has no such column or no rows, or cells are wrong, with their lines.
    """
    problems: list[str] = []
    values: list[float] = []
    for line, cell in _cells(path, column):
        try:
            values.append(unit.check(cell.strip()))
        except ValueError as reason:
            problems.append(f"column = {cell}: line {line} of {path.name} {reason}")
    if not values and not problems:
        problems.append(f"path = {path}: has no rows below the line of column names")
    if problems:
        raise UserError(_few(problems))
    return values


def _cells(path: Path, column: str) -> Iterator[tuple[int, str]]:
    try:
        # utf-8-sig: the byte order mark of spreadsheets would otherwise become part of the first name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            names = rows.fieldnames or []
            if column not in names:
                raise UserError(f"column = {column}: not in {path.name}; its columns are {', '.join(names) or 'none'}")
            yield from ((rows.line_num, row[column] or "") for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        text = reason.strerror if isinstance(reason, OSError) else str(reason)
        raise UserError(f"path = {path}: cannot be read as CSV ({text}); give a readable file") from reason


def _few(problems: list[str], limit: int = 5) -> list[str]:
    """Returns the first few problems; a file with a million bad cells usually has one mistake."""
    if len(problems) <= limit:
        return problems
    return [*problems[:limit], f"column: and {len(problems) - limit} more such lines"]
