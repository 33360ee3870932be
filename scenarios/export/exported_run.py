"""What every exporter writes about a run: settings, headline figures, and series over rounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.metrics.comparison import FIGURES
from scenarios.run_folder.reader import StoredRun, explaining_damage, open_run
from scenarios.sweeps.pivot import axis_text
from scenarios.sweeps.read_sweep import SweepTable, is_sweep, read_sweep

_SERIES = ("accuracy_after_mean", "accuracy_after_max", "accuracy_after_min", "loss", "cohort", "updates_used")


@dataclass(frozen=True)
class ExportedRun:
    """One run to export.

    Attributes:
        name: a name that no other run of this export has
        run: the run's folder
        axes: the settings of its cell, if it is one of a sweep
    """

    name: str
    run: StoredRun
    axes: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What tells this run from others: a digest of its scenario and its results."""
        summary = self.run.summary or {}
        content = [self.run.scenario_text, summary.get("digest"), summary.get("stopped_because")]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def settings(self) -> dict[str, str]:
        """Every key of the resolved scenario, flat."""
        return dict(_flat(self.run.scenario))

    @cached_property
    def figures(self) -> dict[str, float]:
        """The headline figures that the run has; infinite ones too."""
        summary = self.run.summary or {}
        found = {name: figure.of(summary) for name, figure in FIGURES.items()}
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """The rows of `rounds.parquet`."""
        rows: list[dict[str, Any]] = self.run.table("rounds").to_pylist()
        return rows

    def series(self) -> Iterator[tuple[str, int, float, float]]:
        """Yields (name, round, simulated seconds at its end, value) of each figure that a round has."""
        for row in self.rounds:
            for name in _SERIES:
                if row.get(name) is not None:
                    yield name, int(row["round"]), float(row["end_s"]), float(row[name])


def collect(paths: Sequence[Path]) -> list[ExportedRun]:
    """Returns the finished runs behind run folders and sweep folders; raises a `UserError` for what is neither."""
    found = [run for path in paths for run in (_cells(read_sweep(path)) if is_sweep(path) else [_one(path)])]
    if not found:
        raise UserError("nothing to export: no cell of the sweep has finished")
    names = [run.name for run in found]
    return [
        run if names.count(run.name) == 1 else ExportedRun(f"{run.name}-{run.key[:8]}", run.run, run.axes)
        for run in found
    ]


def _cells(sweep: SweepTable) -> Iterator[ExportedRun]:
    for row in sweep.done:
        path = (sweep.path / str(row["folder"])).resolve()
        axes = {"base": str(row["base"])} | {name: axis_text(row[name]) for name in sweep.axes}
        yield ExportedRun(path.name, open_run(path), axes)


def _one(path: Path) -> ExportedRun:
    with explaining_damage(path):
        run = open_run(path)
    if run.summary is None:
        raise UserError(f"RUN = {path}: has not finished; resume it first")
    return ExportedRun(path.resolve().name, run)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{path}.{key}" if path else str(key))
    else:
        yield path, str(value)
