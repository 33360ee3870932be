"""What is expected of an exchange while it is foretold: who will have heard from all, and who will still be sending."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from p2p.fair import Finished
from p2p.foretelling import Floats, Nodes, Plan

Batch = tuple[Nodes, Nodes, Nodes, Floats]
"""Transfers: names, senders, receivers, bytes. Updates are called by the places of their edges, reports come after."""
Turned = tuple[Nodes | list[int], Floats | list[float]]
"""Transfers, and when they will have left."""
_FEW = 64


class ExchangeOutlook:
    """The updates' ends as far as is known, and what follows from them.

    A report is let in only if it finds its sender's updates still leaving: elsewhere it has its uplink to itself.

    Attributes:
        left_s: when each update has left, as things stand
        held: the kind of link that held each back
        averages_s: when each member has heard from all and has sent itself
        reported_s: when each report that was let in has left; not a number for the others
    """

    def __init__(self, plan: Plan, latencies: Floats) -> None:
        count, members = len(plan.edges), len(plan.members)
        self._plan, self._latencies = plan, latencies
        self._receivers = np.empty(count, dtype=np.int64)  # places of members
        self._receivers[plan.by_receiver] = np.repeat(np.arange(members), plan.degree)
        self._heard = plan.by_receiver.reshape(members, plan.degree)
        self.left_s, self.held = np.full(count, np.inf), np.zeros(count, dtype=np.int8)
        self.averages_s, self.reported_s = np.full(members, np.inf), np.full(members, np.nan)
        self._busy_until_s = np.full(members, np.inf)
        self._is_in = np.zeros(members, dtype=np.bool_)
        self._reports: list[tuple[float, int]] = []
        self._sends: list[tuple[float, int]] = []

    def plan_sends(self) -> None:
        """Nothing has started yet: all updates will."""
        order = np.argsort(-self._plan.sends_s, kind="stable")
        self._sends = list(zip(self._plan.sends_s[order].tolist(), order.tolist(), strict=True))

    def next_start_s(self) -> float:
        """When somebody sends, or reports while it is still sending."""
        report_s = self._next_report_s()
        return min(report_s, self._sends[-1][0]) if self._sends else report_s

    def starts_at(self, time_s: float) -> Batch:
        """The updates and the reports that start then."""
        senders, reporters = [], []
        while self._sends and self._sends[-1][0] == time_s:
            senders.append(self._sends.pop()[1])
        while self._next_report_s() == time_s:
            place = heappop(self._reports)[1]
            self._is_in[place] = True
            reporters.append(place)
        parts = [self._updates(senders), self._reports_of(reporters)] if senders else [self._reports_of(reporters)]
        return parts[0] if len(parts) == 1 else _joined(*parts)

    def expect_all(self, ends_s: Floats) -> None:
        """When all updates will have left, as long as nobody disturbs them."""
        self.left_s[:] = ends_s
        everyone = np.arange(len(self.averages_s))
        self._look_at(everyone, everyone)

    def expect(self, numbers: Nodes | list[int], ends_s: Floats | list[float]) -> None:
        """Some transfers will have left at other times than it seemed."""
        if isinstance(numbers, list) and len(numbers) <= _FEW:
            self._expect_few(numbers, ends_s)
            return
        numbers, ends_s = np.asarray(numbers), np.asarray(ends_s)
        updates = numbers < len(self.left_s)
        self.left_s[numbers[updates]] = ends_s[updates]
        self._look_at(np.unique(self._receivers[numbers[updates]]), np.unique(numbers[updates] // self._plan.degree))

    def _look_at(self, receivers: Nodes, senders: Nodes) -> None:
        """Finds anew when some members will have heard from all, and when some will have sent all."""
        heard, own = self._heard[receivers], senders[:, None] * self._plan.degree + np.arange(self._plan.degree)
        arrives_s = (self.left_s[heard] + self._latencies[heard]).max(axis=1)
        self.averages_s[receivers] = np.maximum(arrives_s, self._plan.sends_s[receivers])
        self._busy_until_s[senders] = self.left_s[own].max(axis=1)
        who = receivers if receivers is senders else np.union1d(receivers, senders)
        meets = who[(self.averages_s[who] < self._busy_until_s[who]) & ~self._is_in[who]]
        if len(self._reports) > 2 * len(self.averages_s):
            self._reports = [entry for entry in set(self._reports) if self._is_due(*entry)]
        self._reports += zip(self.averages_s[meets].tolist(), meets.tolist(), strict=True)
        heapify(self._reports)

    def _expect_few(self, numbers: list[int], ends_s: Floats | list[float]) -> None:
        """The same without arrays, which are slow for a handful."""
        degree, count, left_s, latencies = self._plan.degree, len(self.left_s), self.left_s, self._latencies
        updates = [number for number in numbers if number < count]
        for number, end_s in zip(numbers, ends_s, strict=True):
            if number < count:
                left_s[number] = end_s
        receivers = dict.fromkeys([self._receivers.item(number) for number in updates])
        senders = dict.fromkeys([number // degree for number in updates])
        for place in receivers:
            heard = self._heard[place].tolist()
            arrives_s = max([left_s.item(number) + latencies.item(number) for number in heard])
            self.averages_s[place] = max(arrives_s, self._plan.sends_s.item(place))
        for place in senders:
            self._busy_until_s[place] = left_s[place * degree : (place + 1) * degree].max()
        for place in receivers | senders:
            time_s = self.averages_s.item(place)
            if time_s < self._busy_until_s.item(place) and not self._is_in.item(place):
                heappush(self._reports, (time_s, place))

    def note(self, finished: Finished) -> None:
        """Some transfers have left."""
        numbers, ends_s, held = finished
        updates = numbers < len(self.left_s)
        self.left_s[numbers[updates]], self.held[numbers[updates]] = ends_s[updates], held[updates]
        self.reported_s[numbers[~updates] - len(self.left_s)] = ends_s[~updates]

    def _next_report_s(self) -> float:
        reports = self._reports
        while reports and not self._is_due(*reports[0]):
            heappop(reports)
        return reports[0][0] if reports else np.inf

    def _is_due(self, time_s: float, place: int) -> bool:
        """Whether a member will report then, as things stand, and find its updates still leaving."""
        as_told = time_s == self.averages_s.item(place) and not self._is_in.item(place)
        return as_told and time_s < self._busy_until_s.item(place)

    def _updates(self, places: Sequence[int]) -> Batch:
        degree, edges = self._plan.degree, self._plan.edges
        numbers = (np.array(sorted(places))[:, None] * degree + np.arange(degree)).ravel()
        return numbers, edges[numbers, 0], edges[numbers, 1], np.full(len(numbers), float(self._plan.update.size_bytes))

    def _reports_of(self, places: Sequence[int]) -> Batch:
        who = np.array(places, dtype=np.int64)
        sizes = np.full(len(who), float(self._plan.report.size_bytes))
        return len(self.left_s) + who, self._plan.members[who], np.full(len(who), self._plan.hub), sizes


def _joined(some: Batch, others: Batch) -> Batch:
    ids, src, dst, sizes = (np.concatenate(pair) for pair in zip(some, others, strict=True))
    return ids, src, dst, sizes
