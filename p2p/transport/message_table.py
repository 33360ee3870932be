"""The writer of the message log: turns slots of the event core into rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from p2p.log.log import Log
from p2p.log.records import KIND, NO_NODE, OUTCOME, REASON
from p2p.transport.core import event_core as core
from p2p.transport.core import layout as at
from p2p.transport.core.memory import Memory

_FIELDS = {
    **{name: name for name in ("kind", "sender", "receiver", "attempt", "sent_s", "left_s", "arrived_s")},
    **{name: name for name in ("outcome", "reason", "bottleneck", "left_bytes", "origin", "destination", "previous")},
    **{"round": "round_number", "size_bytes": "size_bytes", "overhead_bytes": "overhead"},
}
_AT_ONCE = 1 << 16
"""How many ended messages are written together."""


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
        count = int(memory.record["ended"])
        # In pieces, since their copies take memory.
        for first in range(0, count, _AT_ONCE):
            self._write(memory.gather_slots(memory.ended["value"][first : min(first + _AT_ONCE, count)]))
        if count:
            memory.call(core.RELEASE)

    def write_all(self) -> None:
        """Brings the table up to date, including messages in flight."""
        self.write_ended()
        used = self._memory.slots[: int(self._memory.record["used_slots"])]
        under_way = (used["state"] != at.FREE) & (used["state"] != at.WAITING)
        if under_way.any():
            # The end of a message in flight is precomputed but may still change, so its row shows only the hand-over.
            some = self._memory.gather_slots(np.flatnonzero(under_way))
            moving = some["state"] < at.INBOX
            some["left_s"][moving], some["bottleneck"][moving] = np.nan, 0
            self._write(some)
        # After all rows are written: a rejection overrides the outcome "delivered" of its row.
        if self._refused:
            rows, reasons = np.array(self._refused, dtype=np.int64).T
            self._refused = []
            self._table.written("outcome")[rows] = OUTCOME["rejected"]
            self._table.written("reason")[rows] = reasons
        self._log.write_used()

    def _write(self, messages: Any) -> None:
        table, rows = self._table, messages["row"]
        table.stretch(int(self._memory.record["rows"]))
        for column, field in _FIELDS.items():
            table.written(column)[rows] = messages[field]
        # Control messages are used on arrival; the others are marked by the node that uses them.
        table.written("used")[rows] = messages["kind"] == KIND["control"]
        damaged = (messages["flag_bits"] & at.CORRUPTED) != 0
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
