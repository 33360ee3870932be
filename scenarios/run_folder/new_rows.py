"""Rows of a log that are new or changed since the last read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import Rows
from scenarios.run_folder import arrow_tables


class FreshRows:
    """A cursor into a log: rows added since the last `take`, and messages in flight then that have ended since."""

    __slots__ = ("_in_flight", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._in_flight: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def take(self, log: Log) -> dict[str, Rows]:
        """Returns the new rows of every table, and changed messages; the next `take` starts after them."""
        found = {}
        for name in arrow_tables.LOGGED:
            length = len(getattr(log, name))
            rows = slice(self._seen.get(name, 0), length)
            found[name] = self._with_ended(log, rows) if name == "messages" else rows
            self._seen[name] = length
        return found

    def _with_ended(self, log: Log, new: slice) -> Rows:
        """Returns the new rows and the earlier messages that have ended; a slice if there are none of those."""
        outcome, in_flight = log.messages["outcome"], records.OUTCOME["in_flight"]
        # Outcomes change in place, so earlier rows that were in flight are looked at again.
        waiting = outcome[self._in_flight] == in_flight
        ended = self._in_flight[~waiting]
        fresh = new.start + np.flatnonzero(outcome[new] == in_flight)
        self._in_flight = np.concatenate([self._in_flight[waiting], fresh])
        # A slice is read without copying the columns.
        return np.concatenate([ended, np.arange(new.start, new.stop)]) if len(ended) else new


def count_rows(rows: Rows) -> int:
    """Returns the number of rows."""
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)
