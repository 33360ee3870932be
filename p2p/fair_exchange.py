"""Foretells an exchange under fair sharing where downlinks may be short.

Updates of one size that leave at one instant need a single filling. What disturbs them is a report that joins its
sender's updates while these are still leaving: it is felt around that uplink for the moment it takes. So everything is
worked out as arrays first, and such reports are then let in one by one, each where it is felt.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from p2p.exchange_outlook import Batch, ExchangeOutlook, Turned
from p2p.fair import FairShare, Finished, are_few, joined
from p2p.foretelling import Codes, Floats, Plan
from p2p.links import Links
from p2p.local_share import LocalShare
from p2p.records import BOTTLENECK
from p2p.still_life import StillLife

_CODES = np.array([BOTTLENECK["uplink"], BOTTLENECK["downlink"], BOTTLENECK["latency"]], dtype=np.int8)
_AT_THE_END = float(np.finfo(np.float64).max)


class Ends(NamedTuple):
    """When each update and each report has left, when each member averages, and what held the updates back."""

    left_s: Floats
    reported_s: Floats
    averages_s: Floats
    bottleneck: Codes


class Sharing(Protocol):
    """Transfers that share links, and when each will have left as things stand."""

    def start(self, time_s: float, batch: Batch) -> None:
        """Begins transfers."""

    def pass_until(self, time_s: float) -> Turned | None:
        """Lets time pass until just before an instant, or until transfers are to end at other times than was told.

        These are named then, with those times; None if there were none.
        """

    def finish(self) -> Finished:
        """Everything that has left, when it all has."""


class Everywhere:
    """Sharing among few nodes: every filling is of everything."""

    def __init__(self, share: FairShare) -> None:
        self._share, self._is_told = share, True
        self._ended: list[Finished] = []

    def start(self, time_s: float, batch: Batch) -> None:
        """Begins transfers."""
        self._share.start(time_s, *batch)
        self._is_told = False

    def pass_until(self, time_s: float) -> Turned | None:
        """Tells of all of them after each end, unless they started together and are alike."""
        if self._is_told:
            next_s = np.inf if self._share.steady else self._share.next_event_s()
            if next_s >= time_s:
                return None
            self._ended.append(self._share.advance(next_s))
        self._is_told = True
        forecast = self._share.forecast()
        return forecast.ids, forecast.finished_s

    def finish(self) -> Finished:
        """Everything that has left, when it all has."""
        return joined([*self._ended, self._share.advance(_AT_THE_END)])


class WhereFelt:
    """Sharing among many nodes."""

    def __init__(self, share: LocalShare) -> None:
        self._share = share

    def start(self, time_s: float, batch: Batch) -> None:
        """Begins transfers."""
        self._share.start(time_s, *batch)

    def pass_until(self, time_s: float) -> Turned | None:
        """Tells of those that have turned."""
        if not self._share.run_to_turn(time_s):
            return None
        turned, self._share.changed = self._share.changed, {}
        return [flow.number for flow in turned], [flow.line.finish_s for flow in turned]

    def finish(self) -> Finished:
        """Everything that has left, when it all has."""
        return self._share.advance(_AT_THE_END)


def share_exchange(plan: Plan, links: Links, latencies: Floats) -> Ends:
    """How an exchange goes in which nothing comes but its own updates and reports."""
    outlook, (up, down) = ExchangeOutlook(plan, latencies), (links.up, links.down)
    sharing: Sharing
    if are_few(len(up)):
        sharing = Everywhere(FairShare(up, down))
        outlook.plan_sends()
    elif (plan.sends_s == plan.sends_s[0]).all():
        still = StillLife(plan, up, down)
        sharing = WhereFelt(LocalShare(up, down, still, watched=True))
        outlook.expect_all(still.finish_s)
        outlook.held[:] = still.held
    else:
        sharing = WhereFelt(LocalShare(up, down, watched=True))
        outlook.plan_sends()
    _play(sharing, outlook)
    is_alone = np.isnan(outlook.reported_s)
    # What ends together does so at one instant, which is known once it has.
    averages_s = np.where(is_alone, plan.averages_s(outlook.left_s + latencies), outlook.averages_s)
    alone_s = averages_s + plan.report.size_bytes / up[plan.members]
    return Ends(outlook.left_s, np.where(is_alone, alone_s, outlook.reported_s), averages_s, _CODES[outlook.held])


def _play(sharing: Sharing, outlook: ExchangeOutlook) -> None:
    """Lets updates, and reports that meet updates, start in the order of time until nothing is left to change."""
    while True:
        start_s = outlook.next_start_s()
        turned = sharing.pass_until(start_s)
        if turned is not None:
            outlook.expect(*turned)
        elif start_s < np.inf:
            sharing.start(start_s, outlook.starts_at(start_s))
        else:
            break
    outlook.note(sharing.finish())
