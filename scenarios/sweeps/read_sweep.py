"""Reads the folder of a sweep: its axes and the rows of `runs.parquet`. Needs no scenario, and computes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.run_folder.parquet_files import read_table

CELLS, RUNS = "cells.json", "runs.parquet"
CELL_PAGE = "report.html"
"""The page of a run, in its folder."""


@dataclass(frozen=True, slots=True)
class SweepTable:
    """A sweep as its folder has it.

    Attributes:
        path: the folder
        name: the sweep's name
        question: its question
        axes: the paths of its axes
        groups: the same, those that move together in one group
        remarks: axes that were left out in some base
        rows: one per cell, finished or not
    """

    path: Path
    name: str
    question: str
    axes: list[str]
    groups: list[tuple[str, ...]]
    remarks: list[str]
    rows: list[dict[str, Any]]

    @property
    def done(self) -> list[dict[str, Any]]:
        """The rows of finished cells."""
        return [row for row in self.rows if row["state"] == "done"]


def is_sweep(path: Path) -> bool:
    """Returns whether a folder is that of a sweep."""
    return (path / CELLS).is_file()


def read_sweep(path: Path) -> SweepTable:
    """Reads a sweep's folder; raises a `UserError` if it is none."""
    import pyarrow as pa

    try:
        content = json.loads((path / CELLS).read_text(encoding="utf-8"))
        rows = read_table(path / RUNS).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        why = str(error).splitlines()[0]
        raise UserError(f"SWEEP = {path}: is no folder of a sweep, or damaged ({why}); sweep again") from error
    if not isinstance(content, Mapping) or content.get("format") != 1:
        raise UserError(f"SWEEP = {path}: {CELLS} has an unknown format; sweep again")
    axes = [str(name) for name in content.get("axes") or ()]
    if any(name not in row for row in rows[:1] for name in (*axes, "cell", "base", "seed", "state", "accuracy")):
        raise UserError(f"SWEEP = {path}: {CELLS} and {RUNS} contradict each other; sweep again")
    remarks = [str(line) for line in content.get("remarks") or ()]
    question = str(content.get("question") or "")
    return SweepTable(path, str(content["name"]), question, axes, _groups(axes, content), remarks, rows)


def _groups(axes: list[str], content: Mapping[str, Any]) -> list[tuple[str, ...]]:
    # Sweeps of earlier versions have no list of groups; their axes stand alone.
    together = [tuple(names) for names in content.get("together") or () if set(names) <= set(axes)]
    alone = [(name,) for name in axes if not any(name in names for names in together)]
    return sorted([*together, *alone], key=lambda names: axes.index(names[0]))
