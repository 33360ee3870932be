"""Runs a sweep: finds what the store has, runs the rest, and keeps the table of results up to date."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p.config.errors import UserError
from scenarios.loading.problems import suggestion
from scenarios.sweeps.cell_task import CellOutcome
from scenarios.sweeps.executors import check_pool, open_pool
from scenarios.sweeps.grid import Cell, Grid, base_name
from scenarios.sweeps.live_table import live_table
from scenarios.sweeps.resources import largest_cell_bytes, worker_count
from scenarios.sweeps.results import Row, SweepFolder
from scenarios.sweeps.scheduling import CellQueue
from scenarios.sweeps.store import Store
from scenarios.sweeps.sweep_file import Sweep, value_text

DEFAULT_STORE = Path("runs") / "cells"


def default_folder(name: str) -> Path:
    """Returns the folder of a sweep that is called so."""
    return Path("runs") / "sweeps" / name.replace("/", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """How a sweep is run.

    Attributes:
        on: the executor
        workers: cells at once; none takes as many as cores and memory allow
        shard: (I, N): this is process I of N that share the folder; it begins with its own part of the cells
        retry: runs failed cells again
    """

    on: str = "processes"
    workers: int | None = None
    shard: tuple[int, int] | None = None
    retry: bool = False
    data_dir: Path | None = None
    allow_plugins: bool = False
    quiet: bool = True


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The rows of a sweep, and how many cells came from the store or are held by other processes."""

    rows: list[Row]
    found: int
    elsewhere: int

    def count(self, state: str) -> int:
        """Returns how many cells are in a state: done, failed or open."""
        return sum(row["state"] == state for row in self.rows)


def run_sweep(
    sweep: Sweep,
    grid: Grid,
    folder: Path,
    store: Store,
    options: SweepOptions,
    only: Container[str] | None = None,
) -> SweepResult:
    """Runs every cell that is not finished, or those with a key in `only`; returns the rows of all.

    Raises:
        UserError: a cell cannot fit, or disk or executor are lost. Finished cells are kept.
    """
    check_pool(options.on)
    workers = worker_count(largest_cell_bytes(grid.cells, options.data_dir))
    store.prepare()
    written = SweepFolder(folder, sweep, grid, store)
    written.begin()
    chosen = [cell for cell in grid.cells if only is None or cell.key in only]
    todo = _unfinished(chosen, store, options)
    found = sum(row["state"] == "done" for row in written.rows())
    elsewhere = 0
    if todo:
        with (
            live_table(sweep.name, len(grid.cells), found, store, options.quiet) as progress,
            open_pool(options.on, options.workers or workers) as pool,
        ):

            def ended(cell: Cell, outcome: CellOutcome) -> None:
                progress.ended(outcome.state == "failed")
                written.update()

            queue = CellQueue(
                todo,
                store,
                allow_plugins=options.allow_plugins,
                data_dir=options.data_dir,
                leave_claimed=options.shard is not None,
                on_end=ended,
                on_tick=progress.tick,
            )
            try:
                elsewhere = queue.run(pool)
            finally:
                # Also after Ctrl-C and errors: what has ended is in the table.
                written.update(now=True)
    return SweepResult(written.rows(), found, elsewhere)


def choose(cells: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """Returns the cells with these `axis=value` settings; an axis may be named by its last part."""
    for text in only:
        name, equals, wanted = text.partition("=")
        if not equals:
            raise UserError(f"--only {text}: must be axis=value, such as `seed=3`")
        names = {path: None for cell in cells for path in _named(cell)}
        # All paths that end so: bases may have the same key in different places.
        paths = [path for path in names if name in (path, path.rpartition(".")[2])]
        if not paths:
            raise UserError(f"--only {text}: no axis is called so; {suggestion(name, names)}")
        kept = [cell for cell in cells if any(_named(cell).get(path) == wanted.strip() for path in paths)]
        if not kept:
            known = dict.fromkeys(value for cell in cells for path in paths if (value := _named(cell).get(path)))
            raise UserError(f"--only {text}: no cell has that value; known are {', '.join(known)}")
        # Each further `--only` narrows what the earlier ones left.
        cells = kept
    return list(cells)


def _named(cell: Cell) -> dict[str, str]:
    texts = {path: value_text(value) for path, value in cell.settings.items()}
    return texts | {"seed": str(cell.seed), "base": base_name(cell.base)}


def _unfinished(cells: Sequence[Cell], store: Store, options: SweepOptions) -> list[Cell]:
    todo = []
    for cell in cells:
        noted = store.state(cell.key).get("state")
        # One that finished without a note (killed in between) is handed over once more, to be noted.
        if noted == "done" and store.summary(cell.key, look=False) is not None:
            continue
        if noted == "failed":
            if not options.retry:
                continue
            # Forgotten now, so that it counts as waiting while it waits.
            store.forget(cell.key)
        todo.append(cell)
    if options.shard is None:
        return todo
    # Its own part first, then what other shards have left.
    mine, count = options.shard
    return todo[mine - 1 :: count] + [cell for place, cell in enumerate(todo) if place % count != mine - 1]


def status(grid: Grid, store: Store) -> list[dict[str, Any]]:
    """Returns the state of every cell: done, failed with its message, running with its round, begun or waiting."""
    store.refresh()
    return [_status(cell, store) for cell in grid.cells]


def _status(cell: Cell, store: Store) -> dict[str, Any]:
    noted, place = store.state(cell.key), store.find(cell.key)
    row: dict[str, Any] = {"cell": cell.label, "key": cell.key, "state": "waiting"}
    row["folder"] = None if place is None else str(place)
    if store.summary(cell.key, look=False) is not None:
        return row | {"state": "done", "seconds": noted.get("seconds")}
    if noted.get("state") == "failed":
        return row | {"state": "failed", "message": noted.get("message")}
    if store.is_claimed(cell.key):
        return row | {"state": "running", "round": noted.get("round"), "rounds": cell.scenario.rounds}
    return row | ({"state": "begun", "round": noted.get("round")} if place is not None else {})
