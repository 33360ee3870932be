"""Progress of a sweep on the terminal: done, running with rounds, failed, time left; silent elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from scenarios.loading.problems import printable, shorten
from scenarios.metrics.headline.number_format import count_text, seconds_text
from scenarios.sweeps.grid import Cell
from scenarios.sweeps.store import Store

if TYPE_CHECKING:
    from rich.console import Group

_ROWS = 12


class SweepProgress(Protocol):
    """A listener for cells that run and end."""

    def ended(self, failed: bool) -> None:
        """Receives the end of a cell."""

    def tick(self, running: Sequence[Cell]) -> None:
        """Receives the cells that are handed over, whenever they change and several times a second."""


class NoTable:
    """Shows nothing."""

    def ended(self, failed: bool) -> None:
        """Does nothing."""

    def tick(self, running: Sequence[Cell]) -> None:
        """Does nothing."""


class LiveTable:
    """The table; time left is judged by the cells that ended since the start."""

    def __init__(self, name: str, total: int, found: int, store: Store) -> None:
        self._name, self._total, self._found, self._store = name, total, found, store
        self._done = self._failed = 0
        self._running: Sequence[Cell] = ()
        self._began_s = time.monotonic()

    def ended(self, failed: bool) -> None:
        """Counts a cell."""
        self._done, self._failed = self._done + (not failed), self._failed + failed

    def tick(self, running: Sequence[Cell]) -> None:
        """Takes the cells that the table shows."""
        self._running = running

    def draw(self) -> Group:
        """Returns the table as it is now."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2, 0, 2))
        begun = 0
        for cell in self._running:
            state = self._store.state(cell.key)
            if state.get("state") == "running" and begun < _ROWS:
                begun += 1
                grid.add_row(
                    Text(printable(shorten(cell.label, 200))), f"{state.get('round')} of {cell.scenario.rounds}"
                )
        return Group(Text(printable(self._line(begun))), grid)

    def _line(self, begun: int) -> str:
        # `found` were there at the start and took no time.
        done, ended = self._found + self._done, self._done + self._failed
        parts = [f"{count_text(done)} of {count_text(self._total)} done", f"{begun} running"]
        if self._failed:
            parts.append(f"{count_text(self._failed)} failed")
        left = self._total - done - self._failed
        if ended and left:
            # Wall time over all workers, so their number is in it; cells of the store are not counted.
            each_s = (time.monotonic() - self._began_s) / ended
            parts.append(f"about {seconds_text(each_s * left)} left")
        return f"{self._name}: {', '.join(parts)}"


@contextmanager
def live_table(name: str, total: int, found: int, store: Store, quiet: bool) -> Iterator[SweepProgress]:
    """Shows the table on stderr; silent if `quiet` or if the stream is no terminal."""
    # rich takes long to import, hence only behind this test.
    if quiet or not sys.stderr.isatty():
        yield NoTable()
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    table = LiveTable(name, total, found, store)
    # Drawn by a thread: a cell that runs in this process leaves no time for it.
    with Live(get_renderable=table.draw, console=console, refresh_per_second=4, transient=True):
        yield table
