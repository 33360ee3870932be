"""Progress of a run round by round: a listener, and a bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from scenarios.loading.problems import printable
from scenarios.metrics.headline.number_format import accuracy_text, bytes_text, count_text, epsilon_text, seconds_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@dataclass(frozen=True, slots=True)
class RoundDone:
    """A completed round's row, with the bytes, dropouts and epsilons (published, proven) of the run so far."""

    row: Mapping[str, Any]
    bytes_sent: int
    dropouts: int = 0
    epsilon: float | None = None
    proven: float | None = None


class RoundProgress(Protocol):
    """A listener for completed rounds."""

    def round(self, done: RoundDone) -> None:
        """Receives one completed round."""


class NoProgress:
    """A listener that shows nothing."""

    def round(self, done: RoundDone) -> None:
        """Does nothing."""


class Bar:
    """A progress bar with simulated time, accuracy and bytes."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task

    def round(self, done: RoundDone) -> None:
        """Advances the bar."""
        parts = [f"{seconds_text(done.row['end_s'])} simulated", bytes_text(done.bytes_sent)]
        if done.row.get("accuracy_after_mean") is not None:
            parts.insert(1, f"accuracy {accuracy_text(done.row['accuracy_after_mean'])}")
        if done.dropouts:
            parts.append(f"{count_text(done.dropouts)} dropouts")
        if done.epsilon is not None:
            parts.append(f"epsilon {epsilon_text(done.epsilon)}")
        self._bar.update(self._task, advance=1, details=", ".join(parts))


@contextmanager
def progress(
    total_rounds: int, quiet: bool, title: str = "rounds", file: TextIO | None = None
) -> Iterator[RoundProgress]:
    """Shows a progress bar over rounds on stderr; silent if `quiet` or if the stream is no terminal."""
    stream = file if file is not None else sys.stderr
    # rich takes long to import, hence only behind this test.
    if quiet or not stream.isatty():
        yield NoProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # Markup off: a scenario's name may contain square brackets.
    name, details = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[details]}", markup=False)
    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    with Progress(name, BarColumn(20), MofNCompleteColumn(), details, console=console) as bar:
        yield Bar(bar, bar.add_task(printable(title), total=total_rounds, details=""))
