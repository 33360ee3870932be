"""Foretells messages under fair sharing: where no downlink is short (see p2p/uplinks.py) by simple arithmetic.

A report may share its sender's uplink with updates that are still leaving, and delay them; these delay averages and
reports of others, and so on. Cause comes before effect, so looking again and again ends with the one consistent
answer, mostly after two or three turns.
"""

from __future__ import annotations

import numpy as np

from p2p.fair_exchange import share_exchange
from p2p.foretelling import Exchange, Floats, Foretelling, Load, Nodes, Plan, Sendings, exchanged
from p2p.records import BOTTLENECK
from p2p.sharing import TOGETHER

_MOST_TURNS = 100
_ROOM = 1 - 1e-9
"""A downlink that is filled to the last bit might be short for a moment."""


class FairForetelling(Foretelling):
    """All messages on an uplink get the same rate, and where downlinks are ample nothing else holds them back."""

    def from_hub(self, load: Load, hub: int, receivers: Nodes, sent_s: float) -> Sendings:
        """One message to each node, alone on its downlink."""
        left_s = sent_s + load.size_bytes / self.links.down[receivers]
        arrived_s = left_s + self.links.ways_from(hub)[receivers]
        held = np.where(left_s == sent_s, BOTTLENECK["latency"], BOTTLENECK["downlink"]).astype(np.int8)
        together_s = np.full(len(receivers), sent_s)
        return Sendings(*load[:2], hub, receivers, *load[2:], together_s, left_s, arrived_s, held)

    def apart(self, earlier: Sendings, places: Nodes, later: Sendings) -> bool:
        """Whether each is sent when the one in its place of the earlier ones has left."""
        return bool((later.sent_s >= earlier.left_s[places]).all())

    def exchange(self, plan: Plan) -> Exchange | None:
        """Everything from sending to the reports."""
        latencies, degree = self.links.latencies(plan.edges[:, 0], plan.edges[:, 1]), plan.degree
        if not self.fits(plan.edges, plan.degree):
            return self._shared(plan, latencies)
        left_s = plan.sends_s + plan.update.size_bytes / (self.links.up[plan.members] / degree)
        for _ in range(_MOST_TURNS):
            arrived_s = np.repeat(left_s, degree) + latencies
            averages_s, before_s = plan.averages_s(arrived_s), left_s
            left_s, reported_s = self.joined(plan, averages_s)
            if np.array_equal(left_s, before_s):
                break
        else:
            return None
        sent_s, lefts_s, held = np.repeat(plan.sends_s, degree), np.repeat(left_s, degree), BOTTLENECK["uplink"]
        senders, receivers, update = plan.edges[:, 0], plan.edges[:, 1], plan.update
        updates = Sendings(*update[:2], senders, receivers, *update[2:], sent_s, lefts_s, arrived_s, held)
        return exchanged(plan, updates, self.reported(plan.report, plan.members, plan.hub, averages_s, reported_s))

    def _shared(self, plan: Plan, latencies: Floats) -> Exchange:
        """The same where a downlink may be short."""
        ends, update, (senders, receivers) = share_exchange(plan, self.links, latencies), plan.update, plan.edges.T
        sent_s, left_s, held = np.repeat(plan.sends_s, plan.degree), ends.left_s, ends.bottleneck
        updates = Sendings(*update[:2], senders, receivers, *update[2:], sent_s, left_s, left_s + latencies, held)
        reports = self.reported(plan.report, plan.members, plan.hub, ends.averages_s, ends.reported_s)
        return exchanged(plan, updates, reports)

    def fits(self, edges: Nodes, degree: int) -> bool:
        """Whether all messages along the edges, `degree` for each sender, could come at once at their highest rates."""
        senders, receivers = edges.T
        load = np.bincount(receivers, weights=self.links.up[senders] / degree, minlength=len(self.links.down))
        return bool((load <= self.links.down * _ROOM).all())

    def joined(self, plan: Plan, joins_s: Floats) -> tuple[Floats, Floats]:
        """When each member's updates have left if it sends its report at `joins_s`, and when that has left.

        As `Uplinks` shares an uplink between two waves; where the report comes later, each has it alone.
        """
        up, degree, sent_s = self.links.up[plan.members], plan.degree, plan.sends_s
        size_bytes, small_bytes = plan.update.size_bytes, plan.report.size_bytes
        alone_s, after_s = sent_s + size_bytes / (up / degree), joins_s + small_bytes / up
        rate = up / (degree + 1)
        rest = np.maximum(size_bytes - up / degree * (joins_s - sent_s), 0.0)
        ends_s, small_ends_s = joins_s + rest / rate, joins_s + small_bytes / rate
        first_s = np.minimum(ends_s, small_ends_s)
        over_s = first_s + TOGETHER * np.abs(first_s)
        later_s = first_s + np.maximum(rest - rate * (first_s - joins_s), 0.0) / (up / degree)
        small_later_s = first_s + np.maximum(small_bytes - rate * (first_s - joins_s), 0.0) / up
        shared = alone_s > joins_s
        left_s = np.where(shared, np.where(ends_s <= over_s, first_s, later_s), alone_s)
        small_left_s = np.where(shared, np.where(small_ends_s <= over_s, first_s, small_later_s), after_s)
        return left_s, small_left_s
