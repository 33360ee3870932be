"""Keeps the memory of a worker flat, however many cells it runs."""

from __future__ import annotations

import gc
import time

_REST = 20
"""Pause after each collection, in multiples of its duration: tiny cells share the cost, larger ones pay it each."""


class CycleCollector:
    """Frees what ended cells leave behind.

    A run's objects refer to each other and move to the oldest generation when it ends (see `p2p/gc_pause.py`), which
    Python collects only when that has grown by a quarter in numbers: hundreds of megabytes of arrays count as few.

    Guarantees:
        Collections take at most a twentieth of the time, and what ended before the last pause is freed.
    """

    def __init__(self) -> None:
        self._rests_until_s = -1.0

    def after_cell(self) -> None:
        """Collects cycles, unless that was done a moment ago."""
        began_s = time.monotonic()
        if began_s < self._rests_until_s:
            return
        gc.collect()
        ended_s = time.monotonic()
        self._rests_until_s = ended_s + _REST * (ended_s - began_s)
