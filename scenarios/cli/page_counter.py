"""A progress bar over pages on stderr; silent off a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def page_counter(total: int) -> Iterator[Callable[[], None]]:
    """Shows the bar; each call of the yielded function advances it by one page."""
    if not total or not sys.stderr.isatty():
        yield lambda: None
        return
    # Imported here: rich takes long to import, and is not needed off a terminal.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    with Progress(TextColumn("pages of runs"), BarColumn(20), MofNCompleteColumn(), console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
