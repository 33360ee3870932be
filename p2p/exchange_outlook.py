"""What is expected of an exchange while it is foretold: who will have heard from all, and who will still be sending."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from p2p.fair import Finished
from p2p.foretelling import Floats, Nodes, Plan

Batch = tuple[Nodes, Nodes, Nodes, Floats]
"""Transfers: names, senders, receivers, bytes. Updates are called by the places of their edges, reports come after."""
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

    def expect(self, numbers: Nodes, ends_s: Floats) -> None:
        """Some transfers will have left at other times than it seemed."""
        updates = numbers < len(self.left_s)
        numbers, ends_s = numbers[updates], ends_s[updates]
        self.left_s[numbers] = ends_s
        receivers, senders = self._receivers[numbers], numbers // self._plan.degree
        self._look_at(np.unique(receivers), np.unique(senders))

    def note(self, finished: Finished) -> None:
        """Some transfers have left."""
        numbers, ends_s, held = finished
        updates = numbers < len(self.left_s)
        self.left_s[numbers[updates]], self.held[numbers[updates]] = ends_s[updates], held[updates]
        self.reported_s[numbers[~updates] - len(self.left_s)] = ends_s[~updates]

    def _look_at(self, receivers: Nodes, senders: Nodes) -> None:
        """Finds anew when some members will have heard from all, and when some will have sent all."""
        degree, heard = self._plan.degree, self._heard[receivers]
        arrives_s = (self.left_s[heard] + self._latencies[heard]).max(axis=1, initial=-np.inf)
        self.averages_s[receivers] = np.maximum(arrives_s, self._plan.sends_s[receivers])
        own = senders[:, None] * degree + np.arange(degree)
        self._busy_until_s[senders] = self.left_s[own].max(axis=1, initial=-np.inf)
        who = np.union1d(receivers, senders)
        meets = (self.averages_s[who] < self._busy_until_s[who]) & ~self._is_in[who]
        new = list(zip(self.averages_s[who[meets]].tolist(), who[meets].tolist(), strict=True))
        if len(new) > _FEW:
            self._reports += new
            heapify(self._reports)
        else:
            for entry in new:
                heappush(self._reports, entry)

    def _next_report_s(self) -> float:
        reports = self._reports
        while reports:
            time_s, place = reports[0]
            as_told = time_s == self.averages_s.item(place) and not self._is_in.item(place)
            if as_told and time_s < self._busy_until_s.item(place):
                return time_s
            heappop(reports)
        return np.inf

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
