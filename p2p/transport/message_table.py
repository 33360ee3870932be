"""The writer of the message log: turns slots of the event core into rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from p2p.log.log import Log
from p2p.log.records import MESSAGES, NO_NODE, OUTCOME, REASON
from p2p.transport.core import event_core as core
from p2p.transport.core.memory import Memory


class MessageTable:
    """Writes one row per transmission: ended messages in bulk, messages in flight before any read."""

    def __init__(self, log: Log, memory: Memory, before_release: Callable[[], None]) -> None:
        self._log, self._table, self._memory = log, log.messages, memory
        self._before_release = before_release
        self._refused: list[tuple[int, int]] = []
        self._corrupted: set[int] = set()

    def refuse(self, row: int, reason: str) -> None:
        """Marks a delivered message as rejected, after a check at its opening."""
        self._refused.append((row, REASON[reason]))

    def write_ended(self) -> None:
        """Writes the rows of ended messages and frees their slots."""
        memory = self._memory
        self._before_release()  # listeners see a message while its slot still holds it
        most = len(memory.logged)
        for first in range(0, int(memory.record["ended"]), most):
            self._write(memory.call(core.COPY_ENDED, 0.0, first, most))

    def write_all(self) -> None:
        """Brings the table up to date, including messages in flight."""
        self.write_ended()
        memory, first = self._memory, 0
        while first < memory.record["used_slots"]:
            self._write(memory.call(core.COPY_UNDER_WAY, 0.0, first, len(memory.logged)))
            first = int(memory.record["next_slot"])
        # After all rows are written: a rejection overrides the outcome "delivered" of its row.
        if self._refused:
            rows, reasons = np.array(self._refused, dtype=np.int64).T
            self._refused = []
            self._table.written("outcome")[rows] = OUTCOME["rejected"]
            self._table.written("reason")[rows] = reasons
        self._log.write_used()

    def _write(self, count: int) -> None:
        """Writes the rows that stand in the core's buffer."""
        messages: Any = self._memory.logged[:count]
        table, rows = self._table, messages["row"]
        table.stretch(int(self._memory.record["rows"]))
        for name in MESSAGES:
            table.written(name)[rows] = messages[name]
        damaged = messages["corrupted"] != 0
        if damaged.any():
            self._corrupted.update(rows[damaged].tolist())

    def damages(self, row: int) -> Sequence[tuple[int, int, bool]]:
        """Returns (sender, attempt, whether first hop) of each hop up to this one that corrupted a message."""
        self.write_all()
        rows, column = [row], self._table.written
        while (before := int(column("previous")[rows[-1]])) != NO_NODE:
            rows.append(before)
        return [
            (int(column("sender")[one]), int(column("attempt")[one]), int(column("previous")[one]) == NO_NODE)
            for one in rows[::-1]
            if one in self._corrupted
        ]
