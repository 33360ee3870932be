"""Hands cells to an executor until all have ended; lost ones are handed over again, bad ones fail alone."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import replace
from pathlib import Path

from p2p.config.errors import UserError
from scenarios.loading.load import dump_scenario
from scenarios.sweeps.cell_task import CellOutcome, CellTask, run_cell, unpack
from scenarios.sweeps.executors import WorkerPool
from scenarios.sweeps.grid import Cell
from scenarios.sweeps.store import Store

MOST_DEATHS = 3
"""A cell during which the worker died this often fails: it takes too much memory, or ends its process."""
_POLL_S = 0.25
_CLAIMED_RETRY_S = 1.0


class CellQueue:
    """The cells of one sweeping process that have not ended yet.

    Args:
        on_end: called with every cell that is done or has failed.
        leave_claimed: ends when all others have ended, even if other processes still run some; else waits for them.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        store: Store,
        *,
        allow_plugins: bool = False,
        data_dir: Path | None = None,
        leave_claimed: bool = False,
        on_end: Callable[[Cell, CellOutcome], None] = lambda cell, outcome: None,
        on_tick: Callable[[Sequence[Cell]], None] = lambda running: None,
    ) -> None:
        self._store, self._token = store, store.prepare()
        self._allow_plugins, self._data_dir, self._leave_claimed = allow_plugins, data_dir, leave_claimed
        self._on_end, self._on_tick = on_end, on_tick
        self._waiting = deque(cells)
        # Cells during which a worker died run one by one, so that it is certain whose fault the next death is.
        self._suspects: deque[Cell] = deque()
        self._claimed: dict[str, tuple[Cell, float]] = {}
        self._running: dict[Future[CellOutcome], Cell] = {}
        self._deaths: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    def run(self, pool: WorkerPool) -> int:
        """Runs all cells; returns how many other processes still hold.

        Raises:
            UserError: the disk or the executor is lost; what has ended is in the store.
            KeyboardInterrupt: a cell in this process was interrupted.
        """
        while self._waiting or self._suspects or self._running or (self._claimed and not self._leave_claimed):
            self._submit(pool)
            ended, _ = wait(self._running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            if not self._running:
                # `wait` returns at once when nothing runs.
                time.sleep(_POLL_S)
            broken = False
            for future in ended:
                broken |= self._take(self._running.pop(future), future)
            if broken:
                self._recover(pool)
            self._retry_claimed()
            self._on_tick(list(self._running.values()))
        return len(self._claimed)

    def _submit(self, pool: WorkerPool) -> None:
        # Two per worker: one runs, the next is at hand. More would only fill memory.
        room = 2 * pool.width - len(self._running)
        try:
            # A cell that has ended is recorded before the next one begins, which in this process may take long.
            while room > 0 and self._waiting and not any(future.done() for future in self._running):
                self._hand_over(self._waiting, pool)
                room -= 1
            if self._suspects and not self._running:
                self._hand_over(self._suspects, pool)
        except BrokenExecutor:
            # A worker died between two cells; the futures tell which cells are lost.
            if not self._running:
                self._recover(pool)

    def _hand_over(self, cells: deque[Cell], pool: WorkerPool) -> None:
        cell = cells[0]
        # Told before: an executor of this process returns when the cell has ended.
        self._on_tick([*self._running.values(), cell])
        self._running[pool.executor.submit(run_cell, self._task(cell))] = cell
        # Only once it is handed over: a broken executor raises above, and the cell stays.
        cells.popleft()

    def _task(self, cell: Cell) -> CellTask:
        data_dir = None if self._data_dir is None else str(self._data_dir.absolute())
        origin, store = str(cell.origin), str(self._store.path.absolute())
        text = self._text(cell)
        return CellTask(cell.key, cell.label, text, origin, self._allow_plugins, store, self._token, data_dir)

    def _text(self, cell: Cell) -> str:
        """Returns the resolved scenario; cells that differ in their seed alone share the work of writing it."""
        name = f"{cell.base} {cell.settings}"
        if name not in self._texts:
            self._texts[name] = dump_scenario(replace(cell.scenario, seed=0))
        # The first occurrence is the scenario's own seed, which precedes all sections.
        return self._texts[name].replace("\nseed: 0\n", f"\nseed: {cell.seed}\n", 1)

    def _take(self, cell: Cell, future: Future[CellOutcome]) -> bool:
        """Records the end of a cell; returns whether the executor is broken."""
        try:
            outcome = future.result()
        except BrokenExecutor:
            self._deaths[cell.key] += 1
            if self._deaths[cell.key] < MOST_DEATHS:
                self._suspects.append(cell)
            else:
                self._end(cell, CellOutcome(cell.key, "failed", _died(MOST_DEATHS)))
            return True
        except Exception as error:
            # Dask has tried a cell on several workers and lost them all.
            if type(error).__name__ == "KilledWorker":
                self._end(cell, CellOutcome(cell.key, "failed", _died(MOST_DEATHS)))
                return False
            raise _lost(error) from error
        self._book(cell, outcome)
        return False

    def _book(self, cell: Cell, outcome: CellOutcome) -> None:
        if outcome.state == "stopped":
            raise UserError(outcome.message)
        if outcome.state == "interrupted":
            raise KeyboardInterrupt
        if outcome.state == "claimed":
            self._claimed[cell.key] = (cell, time.monotonic() + _CLAIMED_RETRY_S)
            return
        self._end(cell, outcome)

    def _end(self, cell: Cell, outcome: CellOutcome) -> None:
        if outcome.archive is not None:
            unpack(outcome, self._store, cell.label)
        # A worker that sees the store has noted it already; one that died, or works elsewhere, has not.
        if outcome.archive is not None or (
            outcome.state == "failed" and not self._store.state(cell.key).get("message")
        ):
            self._store.note(cell.key, outcome.note())
        self._on_end(cell, outcome)

    def _retry_claimed(self) -> None:
        """Looks again at cells of other processes: they have ended, are still running, or were abandoned."""
        due = [cell for cell, at_s in self._claimed.values() if time.monotonic() >= at_s]
        for cell in due:
            if self._store.is_claimed(cell.key):
                self._claimed[cell.key] = (cell, time.monotonic() + _CLAIMED_RETRY_S)
                continue
            # Not claimed any more: it has ended, which a worker finds out at once, or was abandoned.
            del self._claimed[cell.key]
            self._waiting.append(cell)

    def _recover(self, pool: WorkerPool) -> None:
        for future, cell in list(self._running.items()):
            if future.done():
                del self._running[future]
                self._take(cell, future)
        # An executor of the user's or of a cluster: only its owner can start it again.
        if pool.restart is None:
            raise _lost(None)
        if not self._running:
            pool.executor = pool.restart()


def _died(times: int) -> str:
    return f"the worker process died {times} times in this cell; is there memory enough? See `peerveil sweep --dry-run`"


def _lost(error: Exception | None) -> UserError:
    why = f" ({type(error).__name__}: {error})" if error is not None else ""
    return UserError(f"--on: the executor is lost{why}; finished cells are kept, start the sweep again to go on")
