"""The results of a sweep: `cells.json` names its cells, `runs.parquet` has one row for each, kept up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p.config.errors import UserError
from scenarios.metrics.comparison import FIGURES
from scenarios.run_folder import atomic_write
from scenarios.run_folder.arrow_arrays import from_numbers, from_strings, from_values
from scenarios.run_folder.json_text import to_json
from scenarios.run_folder.parquet_files import write_table
from scenarios.sweeps.grid import Cell, Grid, base_name
from scenarios.sweeps.read_sweep import CELLS, RUNS
from scenarios.sweeps.store import Store
from scenarios.sweeps.sweep_file import Sweep, value_text

if TYPE_CHECKING:
    import pyarrow as pa

_REST = 20
"""Pause after each write of the table, in multiples of its duration."""
_LEAST_PAUSE_S = 1.0

Row = dict[str, Any]


class SweepFolder:
    """Writes the folder of a sweep.

    Guarantees:
        `runs.parquet` is complete or absent, and a function of the cells and the store alone: whichever process writes
        it, and in whatever order cells ended, it is the same.
    """

    def __init__(self, path: Path, sweep: Sweep, grid: Grid, store: Store) -> None:
        self.path, self._sweep, self._cells, self._store = path, sweep, grid.cells, store
        self._remarks = grid.remarks
        self._rows: dict[str, Row] = {}
        self._rests_until_s = -1.0

    def begin(self) -> None:
        """Makes the folder and writes the list of cells."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out = {self.path}: cannot be written ({error.strerror or error})") from error
        with self._only_writer():
            atomic_write.write_text(self.path / CELLS, to_json(self._content()))
        self.update(now=True)

    def update(self, now: bool = False) -> None:
        """Writes the table, unless it was written a moment ago."""
        if not now and time.monotonic() < self._rests_until_s:
            return
        began_s = time.monotonic()
        # Read and written under one lock: of two processes the later one knows at least as much.
        with self._only_writer():
            self._write(self._collect())
        took_s = time.monotonic() - began_s
        # In proportion to what writing took, so that a large table takes a twentieth of the time at most.
        self._rests_until_s = time.monotonic() + max(_LEAST_PAUSE_S, _REST * took_s)

    def rows(self) -> list[Row]:
        """Returns the rows as they are now, in the order of the cells."""
        return self._collect()

    def _content(self) -> dict[str, Any]:
        return {
            "format": 1,
            "name": self._sweep.name,
            "question": self._sweep.question,
            "axes": self._sweep.axes,
            "together": [[axis.path for axis in group] for group in self._sweep.groups if len(group) > 1],
            "bases": [base_name(base) for base in self._sweep.bases],
            "remarks": self._remarks,
            "store": os.path.relpath(self._store.path, self.path),
            "cells": [
                {"key": cell.key, "base": base_name(cell.base), "settings": dict(cell.settings), "seed": cell.seed}
                for cell in self._cells
            ],
        }

    def _collect(self) -> list[Row]:
        self._store.refresh()
        return [self._row(cell) for cell in self._cells]

    def _row(self, cell: Cell) -> Row:
        known = self._rows.get(cell.key)
        if known is not None:
            return known
        row = self._axes(cell) | _figures(self._store, cell.key, self.path)
        # Finished cells never change once their seconds are noted, just after the summary; others are looked at again.
        if row["state"] == "done" and row["seconds"] is not None:
            self._rows[cell.key] = row
        return row

    def _axes(self, cell: Cell) -> Row:
        return (
            {"cell": cell.key, "base": base_name(cell.base)}
            | {path: cell.settings.get(path) for path in self._sweep.axes}
            | {"seed": cell.seed}
        )

    def _write(self, rows: Sequence[Row]) -> None:
        write_table(self.path / RUNS, to_table(rows, self._sweep.axes), compression="zstd")

    @contextmanager
    def _only_writer(self) -> Iterator[None]:
        import fcntl

        try:
            file = (self.path / ".lock").open("w")
        except OSError as error:
            raise UserError(f"--out = {self.path}: cannot be written ({error.strerror or error})") from error
        with file:
            # Released when the file is closed, also by a process that was killed.
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _figures(store: Store, key: str, folder: Path) -> Row:
    """Returns the part of a row that the store knows."""
    noted, summary = store.state(key), store.summary(key, look=False)
    empty: Row = dict.fromkeys(("stopped_because", *FIGURES, "digest_events", "digest_learning"))
    place = store.find(key) if summary is not None else None
    row = {"state": "open", **empty, "seconds": None, "worker": None, "message": None}
    row["folder"] = None if place is None else os.path.relpath(place, folder)
    if summary is None:
        failed = noted.get("state") == "failed"
        return row | ({"state": "failed", "message": noted.get("message")} if failed else {})
    digests = summary.get("digest") or {}
    return row | {
        "state": "done",
        "stopped_because": summary.get("stopped_because"),
        **{name: figure.of(summary) for name, figure in FIGURES.items()},
        "digest_events": digests.get("events"),
        "digest_learning": digests.get("learning"),
        "seconds": noted.get("seconds"),
        "worker": noted.get("worker"),
    }


def to_table(rows: Sequence[Row], axes: Sequence[str]) -> pa.Table:
    """Returns the rows as a table; an axis of numbers is a column of numbers, any other a column of text."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if name in axes:
            columns[name] = _axis_column(values)
        elif name in FIGURES or name == "seconds":
            columns[name] = from_numbers(values, "f8")
        else:
            columns[name] = from_numbers(values, "i8") if name == "seed" else from_strings(values)
    return pa.table(columns)


def _axis_column(values: Sequence[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    # A bool is no number here: true and 1 are different settings.
    if kinds == {bool} or (kinds and kinds <= {int, float}):
        return from_values(values)
    return from_strings([None if value is None else value_text(value) for value in values])
