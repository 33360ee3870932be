"""The log of a run; metrics, reports and digests are functions of this log alone.

The log contains true identities. It is for the experimenter, never for an adversary (attacks read observations).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.column_table import Table

_SPAN = records.SPAN
_NO_WAIT = (-1, -1, np.nan)  # NaN equals no start time, so a first wait is never merged


@dataclass(slots=True)
class Log:
    """The tables of one run, to which its processes append records."""

    messages: Table = field(default_factory=lambda: Table(records.MESSAGES))
    spans: Table = field(default_factory=lambda: Table(records.SPAN_COLUMNS))
    dropouts: Table = field(default_factory=lambda: Table(records.DROPOUT_COLUMNS))
    graphs: Table = field(default_factory=lambda: Table(records.GRAPH_COLUMNS))
    privacy: Table = field(default_factory=lambda: Table(records.PRIVACY_COLUMNS))
    aggregations: Table = field(default_factory=lambda: Table(records.AGGREGATION_COLUMNS))
    rounds: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    _used: array[int] = field(default_factory=lambda: array("q"))
    _waits: dict[int, tuple[int, int, float]] = field(default_factory=dict, repr=False)

    def mark_used(self, rows: Sequence[int]) -> None:
        """Marks messages as used by their receivers, including all earlier hops of each."""
        self._used.extend(rows)
        # Rows may still be buffered by the writer that set `before_read`; it calls `write_used` after writing them.
        if self.messages.before_read is None:
            self.write_used()

    def write_used(self) -> None:
        """Writes the pending `used` marks to the message table."""
        if not self._used:
            return
        hops, self._used = np.frombuffer(self._used, dtype=np.int64), array("q")
        # One pass per hop: `previous` leads from the last hop of a relayed message back to its first.
        while len(hops):
            self.messages.written("used")[hops] = True
            hops = self.messages.written("previous")[hops]
            hops = hops[hops != records.NO_NODE]

    def span(self, node: int, round_number: int, name: str, start_s: float, end_s: float) -> None:
        """Records a time span of a node; empty spans are dropped, and adjacent waits of a round are merged."""
        if end_s <= start_s:
            return
        if name != "wait":
            self.spans.add((node, round_number, _SPAN[name], start_s, end_s))
            return
        row, last_round, last_s = self._waits.get(node, _NO_WAIT)
        if last_s == start_s and last_round == round_number:
            self.spans["end_s"][row] = end_s
        else:
            row = self.spans.add((node, round_number, _SPAN[name], start_s, end_s))
        self._waits[node] = (row, round_number, end_s)

    def span_each(
        self, nodes: NDArray[Any], round_number: int, name: str, starts_s: NDArray[Any], ends_s: NDArray[Any]
    ) -> None:
        """Records one span for each of many nodes, without merging waits."""
        kept = ends_s > starts_s
        code = records.SPAN[name]
        times = {"start_s": starts_s[kept], "end_s": ends_s[kept]}
        self.spans.extend(int(kept.sum()), node=nodes[kept], round=round_number, name=code, **times)

    def end_wait(self, node: int) -> None:
        """Ends a node's wait, so that its next wait is recorded as a new span."""
        self._waits.pop(node, None)

    def dropout(self, what: str, round_number: int, node: int, reason: str, at_s: float, aggregator: int = -1) -> None:
        """Records an absence, a missing update or a dropout with its reason."""
        self.dropouts.append(
            round=round_number,
            node=node,
            aggregator=aggregator,
            what=records.WHAT[what],
            reason=records.DROPOUT_REASON[reason],
            at_s=at_s,
        )
