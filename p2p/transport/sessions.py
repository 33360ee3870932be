"""Sessions: which nodes read a round's messages from their inboxes."""

from __future__ import annotations

from p2p.transport.core.memory import Memory


class Sessions:
    """A table of one byte per node and round in the core's memory.

    Messages of a round go to the inbox of a node with a session in it; at a node without one they are urgent.
    """

    def __init__(self, memory: Memory, nodes: int) -> None:
        self._memory, self._nodes = memory, nodes
        self._columns: dict[int, int] = {}
        self._bytes = memoryview(bytearray())

    def open(self, node: int, round_number: int) -> None:
        """Opens a node's session of a round."""
        self.prepare(round_number)
        self._bytes[self._columns[round_number] * self._nodes + node] = 1

    def prepare(self, round_number: int) -> None:
        """Makes room for the sessions of a round."""
        if round_number not in self._columns:
            self._add_column(round_number)

    def close(self, node: int, round_number: int) -> None:
        """Closes a node's session of a round."""
        column = self._columns.get(round_number)
        if column is not None:
            self._bytes[column * self._nodes + node] = 0

    def close_all(self, round_number: int) -> None:
        """Closes all sessions of a round."""
        if self._columns.pop(round_number, None) is not None:
            self._memory.rounds["column"][round_number] = -1

    def _add_column(self, round_number: int) -> None:
        # Columns of drained rounds are reused, so the table stays as wide as the rounds that overlap.
        column = next(number for number in range(len(self._columns) + 1) if number not in self._columns.values())
        self._columns[round_number] = column
        self._memory.grow("sessions", (column + 1) * self._nodes)
        # A memoryview: writing one element takes a fraction of the time of a numpy field.
        self._bytes = memoryview(self._memory.sessions).cast("B")
        self._memory.sessions["value"][column * self._nodes : (column + 1) * self._nodes] = 0
        self._memory.rounds["column"][round_number] = column
