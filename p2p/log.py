"""What happened in a run, as facts. Metrics, pages and digests are functions of this log and of nothing else.

The log holds true identities: it is the experimenter's, never an adversary's (attacks read wiretaps).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p import records
from p2p.table import Table

_NO_WAIT = (-1, -1, np.nan)


@dataclass(slots=True)
class Log:
    """The tables of one run, appended to by the processes while it goes."""

    messages: Table = field(default_factory=lambda: Table(records.MESSAGES))
    spans: Table = field(default_factory=lambda: Table(records.SPAN_COLUMNS))
    dropouts: Table = field(default_factory=lambda: Table(records.DROPOUT_COLUMNS))
    graphs: Table = field(default_factory=lambda: Table(records.GRAPH_COLUMNS))
    privacy: Table = field(default_factory=lambda: Table(records.PRIVACY_COLUMNS))
    aggregations: Table = field(default_factory=lambda: Table(records.AGGREGATION_COLUMNS))
    rounds: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    _used: list[int] = field(default_factory=list)
    _waits: dict[int, tuple[int, int, float]] = field(default_factory=dict, repr=False)

    def mark_used(self, rows: Sequence[int]) -> None:
        """Notes that these messages served their purpose, and with each the hops over which it came."""
        self._used += rows
        if self.messages.before_read is None:
            self.write_used()

    def write_used(self) -> None:
        """Brings the messages' table up to date."""
        if not self._used:
            return
        hops, self._used = np.asarray(self._used, dtype=np.int64), []
        while len(hops):
            self.messages.written("used")[hops] = True
            hops = self.messages.written("previous")[hops]
            hops = hops[hops != records.NOBODY]

    def span(self, node: int, round_number: int, name: str, start_s: float, end_s: float) -> None:
        """Records a stretch of a node's time; one of no length is left out, and waiting on is one longer wait."""
        if end_s <= start_s:
            return
        if name != "wait":
            self.spans.add((node, round_number, records.SPAN[name], start_s, end_s))
            return
        row, last_round, last_s = self._waits.get(node, _NO_WAIT)
        if last_s == start_s and last_round == round_number:
            self.spans["end_s"][row] = end_s
        else:
            row = self.spans.add((node, round_number, records.SPAN[name], start_s, end_s))
        self._waits[node] = (row, round_number, end_s)

    def span_each(
        self, nodes: NDArray[Any], round_number: int, name: str, starts_s: NDArray[Any], ends_s: NDArray[Any]
    ) -> None:
        """The same for many nodes."""
        kept = ends_s > starts_s
        code = records.SPAN[name]
        times = {"start_s": starts_s[kept], "end_s": ends_s[kept]}
        self.spans.extend(int(kept.sum()), node=nodes[kept], round=round_number, name=code, **times)

    def end_wait(self, node: int) -> None:
        """A node has waited in vain: if it waits again, that is another wait."""
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
