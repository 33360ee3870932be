"""The order in which cells are handed over, told and recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from scenarios.sweeps import scheduling
from scenarios.sweeps.cell_task import CellOutcome, CellTask
from scenarios.sweeps.executors import SerialExecutor, WorkerPool
from scenarios.sweeps.grid import Cell, expand
from scenarios.sweeps.scheduling import CellQueue
from scenarios.sweeps.store import Store
from scenarios.sweeps.sweep_file import parse_sweep


def test_a_cell_of_this_process_is_shown_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is told before it runs, and recorded before the next one runs."""
    story: list[str] = []

    def run(task: CellTask) -> CellOutcome:
        story.append(f"runs {task.label[-1]}")
        return CellOutcome(task.key, "done")

    def shown(running: Sequence[Cell]) -> None:
        story.extend(f"shows {cell.seed}" for cell in running)

    def ended(cell: Cell, outcome: CellOutcome) -> None:
        story.append(f"records {cell.seed}")

    monkeypatch.setattr(scheduling, "run_cell", run)
    cells = expand(parse_sweep("name: a\nbases: tiny\nsettings: {learning: none}\nseeds: 2")).cells
    CellQueue(cells, Store(tmp_path), on_end=ended, on_tick=shown).run(WorkerPool(SerialExecutor(), 1))
    assert story == ["shows 1", "runs 1", "records 1", "shows 2", "runs 2", "records 2"]
