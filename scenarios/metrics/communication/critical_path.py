"""The critical path of a round: the chain of training, transfers and waits that determines its duration.

The path is followed backwards through the log. An action of a node was triggered by the last useful message that had
reached it, or by the training it had just finished, whichever is later. A gap between the trigger and the action is a
wait that a timer has ended (a deadline, a window). It is charged to the node that was waited for: the path goes on with
the message that was on its way to the waiting node, or with what the node was doing that should have sent it
(`scenarios/metrics/communication/waited_for.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2p.log import records
from p2p.log.column_table import Table
from p2p.log.log import Log
from scenarios.metrics.communication.traffic import late
from scenarios.metrics.communication.waited_for import Awaited, Waits

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
        waited_for: for waits, the node that was waited for, where it is known.
        cut: a timer of the receiver, or of the node that waited, ended the step before it was complete.
    """

    what: str
    node: int
    start_s: float
    end_s: float
    receiver: int | None = None
    held_back_by: str = ""
    waited_for: int | None = None
    cut: bool = False

    @property
    def duration_s(self) -> float:
        """The length of the step."""
        return self.end_s - self.start_s

    @property
    def blamed(self) -> int:
        """The node responsible: one that was waited for, a receiver whose downlink was full, else the acting node."""
        if self.waited_for is not None:
            return self.waited_for
        slow_receiver = self.receiver is not None and self.held_back_by == "downlink"
        return self.receiver if slow_receiver and self.receiver is not None else self.node


def critical_paths(
    log: Log, proxy: int, rounds: Sequence[Mapping[str, Any]] | None = None
) -> Iterator[tuple[Mapping[str, Any], list[CriticalStep]]]:
    """Yields the record and critical path of each round, or of the given ones, in order of time.

    Guarantees:
        The steps cover the round without gap or overlap.
    """
    messages, spans = _by_round(log.messages), _by_round(log.spans)
    # Late messages triggered nothing.
    useful = (log.messages["outcome"] == records.OUTCOME["delivered"]) & ~late(log.messages)
    training = log.spans["name"] == records.SPAN["train"]
    graphs = _by_round(log.graphs)
    for record in log.rounds if rounds is None else rounds:
        rows, trained = messages.get(record["round"], _NONE), spans.get(record["round"], _NONE)
        waits = Waits(log, record, proxy, rows, useful[rows], graphs.get(record["round"], _NONE))
        trace = _Trace(log, rows, rows[useful[rows]], trained[training[trained]], float(record["start_s"]), waits)
        yield record, trace.back_from(proxy, float(record["end_s"]))


_NONE = np.zeros(0, dtype=np.int64)


def _by_round(table: Table) -> dict[int, NDArray[np.int64]]:
    order = np.argsort(table["round"], kind="stable")
    # One sort for all rounds; a search per round would read the table as often as there are rounds.
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
        waits: Waits,
    ) -> None:
        self._waits = waits
        self._messages, self._spans = log.messages, log.spans
        self._rows, self._useful, self._trained, self._start_s = rows, useful, trained, start_s
        self._seen: set[int] = set()
        self._followed: set[tuple[str, int, int, int]] = set()
        self._steps: list[CriticalStep] = []
        self._edge_s = start_s

    def back_from(self, node: int, end_s: float) -> list[CriticalStep]:
        """Returns the path that ends at `node` at `end_s`."""
        # -1 is no kind: the round's end was no message of its last node.
        at_s, sent_kind = end_s, -1
        self._edge_s = end_s
        while at_s > self._start_s + _TOLERANCE_S:
            row, arrived_s = self._last_arrival(node, at_s, sent_kind)
            trained, trained_s = self._last_training(node, at_s)
            awaited = self._awaited(node, at_s, max(arrived_s, trained_s))
            if awaited is not None and awaited.start_s is not None:
                node, at_s, sent_kind = self._follow(awaited, awaited.start_s, node)
                continue
            # Known who, but not since when: the wait is charged to that node and the path stays here.
            who = None if awaited is None else awaited.node
            if row is None and trained is None:
                self._wait(node, self._start_s, at_s, who)
                break
            # On a tie the node's own training counts as the trigger.
            if trained is not None and trained_s >= arrived_s:
                self._wait(node, trained_s, at_s, who)
                at_s = self._add("train", node, float(self._spans["start_s"][trained]), trained_s)
                # Each training is used once, like each message.
                self._trained = self._trained[self._trained != trained]
            elif row is not None:
                self._wait(node, arrived_s, at_s, who)
                node, at_s, sent_kind = self._over(row, arrived_s)
        return self._steps[::-1]

    def _awaited(self, node: int, at_s: float, since_s: float) -> Awaited | None:
        """Returns what a timer ended the wait for, if there was a wait; each is followed once, so the walk ends."""
        if at_s - since_s <= _TOLERANCE_S:
            return None
        found = self._waits.awaited(node, at_s, since_s)
        if found is None or (found.what, found.row, found.node, node) in self._followed:
            return None
        self._followed.add((found.what, found.row, found.node, node))
        # What began after this instant, or at it, explains nothing before it.
        return found if found.start_s is None or found.start_s < at_s - _TOLERANCE_S else found.without_start()

    def _follow(self, awaited: Awaited, start_s: float, node: int) -> tuple[int, float, int]:
        """Adds what the awaited node was doing up to now; returns that node, when it began to, and what it sent."""
        if awaited.what == "train":
            at_s = self._add("train", awaited.node, start_s, self._edge_s, cut=True)
            self._trained = self._trained[self._trained != awaited.row]
            return awaited.node, at_s, -1
        link = records.BOTTLENECKS[self._messages["bottleneck"][awaited.row]] or awaited.link
        at_s = self._add(awaited.what, awaited.node, start_s, self._edge_s, receiver=node, held_back_by=link, cut=True)
        return awaited.node, at_s, int(self._messages["kind"][awaited.row])

    def _wait(self, node: int, start_s: float, end_s: float, waited_for: int | None) -> None:
        self._add(WAIT, node, start_s, end_s, waited_for=waited_for, cut=waited_for is not None)

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
        # Control messages that came during a wait (probes, verdicts for others) did not end it.
        during = arrived_s > self._waits.began_s(node, at_s) + _TOLERANCE_S
        fits &= ~((self._messages["kind"][rows] == records.KIND["control"]) & during)
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
        # Of trainings that end at one instant the first in the log.
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
        if before != records.NO_NODE and first_s > self._start_s:
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
            # The latest of them: of two messages with equal ends the nearer one belongs to this chain.
            sent_s = float(messages["sent_s"][rows[same]].max())
        return sent_s
