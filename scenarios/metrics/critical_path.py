"""The critical path of a round: the chain of training, transfers and waits that determines its duration.

The path is followed backwards through the log. An action of a node was triggered by the last useful message that had
reached it, or by the training it had just finished, whichever is later. A gap between the trigger and the action is a
wait (for a deadline, a window, a timer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.metrics.traffic import late

WAIT, RESEND = "wait", "resend"
# Absorbs rounding errors of simulated times.
_TOLERANCE_S = 1e-9
_TRAINED_FOR = (records.KIND["update"], records.KIND["share"])


@dataclass(frozen=True, slots=True)
class CriticalStep:
    """One step of a critical path.

    Attributes:
        what: `train`, `wait`, `resend` (a lost message and the pause before its next try), or the kind of a message.
        node: the node that trained, waited or sent.
        receiver: for messages, the receiving node.
        held_back_by: for messages, the bottleneck link.
    """

    what: str
    node: int
    start_s: float
    end_s: float
    receiver: int | None = None
    held_back_by: str = ""

    @property
    def duration_s(self) -> float:
        """The length of the step."""
        return self.end_s - self.start_s

    @property
    def blamed(self) -> int:
        """The node responsible for the step: a receiver whose downlink was the bottleneck, else the acting node."""
        slow_receiver = self.receiver is not None and self.held_back_by == "downlink"
        return self.receiver if slow_receiver and self.receiver is not None else self.node


def critical_paths(log: Log, proxy: int) -> Iterator[tuple[Mapping[str, Any], list[CriticalStep]]]:
    """Yields each round's record and critical path, in order of time.

    Guarantees:
        The steps cover the round without gap or overlap.
    """
    messages, spans = _by_round(log.messages), _by_round(log.spans)
    # Late messages triggered nothing.
    useful = (log.messages["outcome"] == records.OUTCOME["delivered"]) & ~late(log.messages)
    training = log.spans["name"] == records.SPAN["train"]
    for record in log.rounds:
        rows, trained = messages.get(record["round"], _NONE), spans.get(record["round"], _NONE)
        trace = _Trace(log, rows, rows[useful[rows]], trained[training[trained]], float(record["start_s"]))
        yield record, trace.back_from(proxy, float(record["end_s"]))


_NONE = np.zeros(0, dtype=np.int64)


def _by_round(table: Table) -> dict[int, NDArray[np.int64]]:
    order = np.argsort(table["round"], kind="stable")
    numbers, starts = np.unique(table["round"][order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(numbers) else {}


class _Trace:
    """Walks backwards through the rows of one round; every message and training is used once, so the walk ends."""

    def __init__(
        self,
        log: Log,
        rows: NDArray[np.int64],
        useful: NDArray[np.int64],
        trained: NDArray[np.int64],
        start_s: float,
    ) -> None:
        self._messages, self._spans = log.messages, log.spans
        self._rows, self._useful, self._trained, self._start_s = rows, useful, trained, start_s
        self._seen: set[int] = set()
        self._steps: list[CriticalStep] = []
        self._edge_s = start_s

    def back_from(self, node: int, end_s: float) -> list[CriticalStep]:
        """Returns the path that ends at `node` at `end_s`."""
        at_s, sent_kind = end_s, -1
        self._edge_s = end_s
        while at_s > self._start_s + _TOLERANCE_S:
            row, arrived_s = self._last_arrival(node, at_s, sent_kind)
            trained, trained_s = self._last_training(node, at_s)
            if row is None and trained is None:
                self._add(WAIT, node, self._start_s, at_s)
                break
            # On a tie the node's own training counts as the trigger.
            if trained is not None and trained_s >= arrived_s:
                self._add(WAIT, node, trained_s, at_s)
                at_s = self._add("train", node, float(self._spans["start_s"][trained]), trained_s)
                # Each training is used once, like each message.
                self._trained = self._trained[self._trained != trained]
            elif row is not None:
                self._add(WAIT, node, arrived_s, at_s)
                node, at_s, sent_kind = self._over(row, arrived_s)
        return self._steps[::-1]

    def _add(self, what: str, node: int, start_s: float, end_s: float, **more: Any) -> float:
        """Adds a step clipped to the round and returns its start; waits shorter than the tolerance are not added."""
        start_s = max(start_s, self._start_s)
        if what != WAIT or end_s - start_s > _TOLERANCE_S:
            # Steps must be contiguous: an omitted wait is added to its neighbour.
            self._steps.append(CriticalStep(what, node, min(start_s, self._edge_s), self._edge_s, **more))
            self._edge_s = self._steps[-1].start_s
        return start_s

    def _last_arrival(self, node: int, at_s: float, sent_kind: int) -> tuple[int | None, float]:
        rows = self._useful
        arrived_s = self._messages["arrived_s"][rows]
        fits = (self._messages["receiver"][rows] == node) & (arrived_s <= at_s + _TOLERANCE_S)
        if sent_kind in _TRAINED_FOR:
            # An update is triggered by assignment and training, not by updates that other nodes sent earlier.
            fits &= self._messages["kind"][rows] != records.KIND["update"]
        for place in np.flatnonzero(fits)[np.argsort(arrived_s[fits], kind="stable")][::-1].tolist():
            if int(rows[place]) not in self._seen:
                return int(rows[place]), float(arrived_s[place])
        return None, -np.inf

    def _last_training(self, node: int, at_s: float) -> tuple[int | None, float]:
        rows, ends_s = self._trained, self._spans["end_s"][self._trained]
        fits = np.flatnonzero((self._spans["node"][rows] == node) & (ends_s <= at_s + _TOLERANCE_S))
        if not len(fits):
            return None, -np.inf
        last = fits[np.argmax(ends_s[fits])]
        return int(rows[last]), float(ends_s[last])

    def _over(self, row: int, arrived_s: float) -> tuple[int, float, int]:
        """Adds a message and its lost earlier attempts; returns its sender, the first send time, and its kind."""
        messages = self._messages
        sender, receiver = int(messages["sender"][row]), int(messages["receiver"][row])
        held_back_by = records.BOTTLENECKS[messages["bottleneck"][row]]
        kind = int(messages["kind"][row])
        sent_s = float(messages["sent_s"][row])
        self._add(records.KINDS[kind], sender, sent_s, arrived_s, receiver=receiver, held_back_by=held_back_by)
        self._seen.add(row)
        first_s = self._first_try_s(row)
        if first_s < sent_s:
            self._add(RESEND, sender, first_s, sent_s, receiver=receiver)
        before = int(messages["previous"][row])
        if before != records.NOBODY and first_s > self._start_s:
            # A relay forwards a message immediately, so the path continues with the previous hop.
            return self._over(before, first_s)
        return sender, max(first_s, self._start_s), kind

    def _first_try_s(self, row: int) -> float:
        """Returns when the first attempt of a message was sent, found by matching its earlier attempts."""
        messages, rows, sent_s = self._messages, self._rows, float(self._messages["sent_s"][row])
        for attempt in range(int(messages["attempt"][row]) - 1, 0, -1):
            same = np.flatnonzero(
                (messages["sender"][rows] == messages["sender"][row])
                & (messages["receiver"][rows] == messages["receiver"][row])
                & (messages["origin"][rows] == messages["origin"][row])
                & (messages["destination"][rows] == messages["destination"][row])
                & (messages["kind"][rows] == messages["kind"][row])
                & (messages["attempt"][rows] == attempt)
                # A later message of the same kind may have the same attempt number.
                & (messages["sent_s"][rows] < sent_s)
            )
            if not len(same):
                break
            sent_s = float(messages["sent_s"][rows[same]].max())
        return sent_s
