"""Exports runs as csv: figures of all, rounds of each, and `traffic.csv` with round, sender, receiver, bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.export.exported_run import ExportedRun
from scenarios.run_folder import atomic_write


def export_csv(runs: Sequence[ExportedRun], out: Path) -> dict[str, Any]:
    """Writes `figures.csv` and a folder per run with `rounds.csv`, `traffic.csv` and `settings.csv`."""
    out.mkdir(parents=True, exist_ok=True)
    axes = list(dict.fromkeys(axis for run in runs for axis in run.axes))
    figures = list(dict.fromkeys(name for run in runs for name in run.figures))
    rows = [
        [run.name, *(run.axes.get(axis, "") for axis in axes), *(run.figures.get(name, "") for name in figures)]
        for run in runs
    ]
    _write(out / "figures.csv", ["run", *axes, *figures], rows)
    for run in runs:
        folder = out / run.name
        folder.mkdir(exist_ok=True)
        _write(folder / "settings.csv", ["key", "value"], run.settings.items())
        names = list(run.rounds[0]) if run.rounds else ["round"]
        _write(folder / "rounds.csv", names, ([row[name] for name in names] for row in run.rounds))
        _write(folder / "traffic.csv", ["round", "sender", "receiver", "bytes"], _traffic(run))
    return {"runs": len(runs), "written": len(runs), "out": str(out)}


def _traffic(run: ExportedRun) -> Iterable[Sequence[Any]]:
    """Sums the bytes that were handed over, retransmissions and lost ones too, by round, sender and receiver."""
    table = run.run.table("messages")
    columns = [table.column(name).to_numpy() for name in ("round", "sender", "receiver")]
    # A message to no node (an address that does not exist) has no receiver: shown as -1.
    ids = np.stack([np.nan_to_num(column.astype(np.float64), nan=-1).astype(np.int64) for column in columns], axis=1)
    groups, place = np.unique(ids, axis=0, return_inverse=True)
    sizes = table.column("size_bytes").to_numpy().astype(np.int64)
    total = np.zeros(len(groups), dtype=np.int64)
    np.add.at(total, place.reshape(-1), sizes)
    rows: list[list[int]] = np.column_stack([groups, total]).tolist()
    return rows


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_safe(cell) for cell in row] for row in rows)
    atomic_write.write_text(path, text.getvalue())


def _safe(value: Any) -> Any:
    """Quotes text that a spreadsheet would evaluate as a formula; numbers keep all digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} else value
