"""What is new in a log since one last looked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from p2p import records
from p2p.log import Log
from scenarios import tables

Rows = NDArray[np.int64]


class FreshRows:
    """Keeps a place in a log: rows added since the last `take`, and messages under way then that have ended."""

    __slots__ = ("_in_flight", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._in_flight: Rows = np.zeros(0, dtype=np.int64)

    def take(self, log: Log) -> dict[str, Rows]:
        """The new rows of every table, of messages also those that have changed; the next `take` starts after them."""
        found = {}
        for name in tables.LOGGED:
            length = len(getattr(log, name))
            rows = np.arange(self._seen.get(name, 0), length)
            found[name] = self._with_ended(log, rows) if name == "messages" else rows
            self._seen[name] = length
        return found

    def _with_ended(self, log: Log, new_rows: Rows) -> Rows:
        rows = np.concatenate([self._in_flight, new_rows])
        under_way = log.messages["outcome"][rows] == records.OUTCOME["in_flight"]
        fresh = np.arange(len(rows)) >= len(self._in_flight)
        self._in_flight = rows[under_way]
        changed: Rows = rows[fresh | ~under_way]
        return changed
