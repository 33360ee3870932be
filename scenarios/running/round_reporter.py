"""What happens when a round has closed: it is written, then shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scenarios.composition.simulation import Simulation
from scenarios.running.journal import Journal
from scenarios.running.progress import RoundDone, RoundProgress


class RoundReporter:
    """Writes every completed round to disk and reports it to progress bar and live page."""

    def __init__(self, simulation: Simulation, journal: Journal, progress: Sequence[RoundProgress]) -> None:
        self._simulation, self._journal, self._progress = simulation, journal, progress
        self._rows, self._bytes_sent = 0, 0

    def __call__(self, row: Mapping[str, Any]) -> None:
        # Written first, so that a round shown as done is on disk.
        self._journal.close_round(int(row["round"]))
        log = self._simulation.log
        dropouts = int(np.count_nonzero(log.dropouts["what"] == 2))
        published = log.privacy["published"]
        epsilon = float(published[-1]) if len(published) and np.isfinite(published[-1]) else None
        local = log.privacy["rigorous"]
        proven = float(np.nanmax(local)) if len(local) and not np.isnan(local).all() else None
        # Only what is new: the log grows with every round, and sizes do not change.
        new = log.messages["size_bytes"][self._rows :]
        self._rows, self._bytes_sent = self._rows + len(new), self._bytes_sent + int(new.sum())
        done = RoundDone(row, self._bytes_sent, dropouts, epsilon, proven)
        for listener in self._progress:
            listener.round(done)
