"""Foretells messages under `ideal` and `fifo` sharing (see p2p/engines.py for both rules)."""

from __future__ import annotations

import numpy as np

from p2p.foretelling import Codes, Exchange, Floats, Foretelling, Load, Nodes, Plan, Sendings, exchanged
from p2p.records import BOTTLENECK


class IdealForetelling(Foretelling):
    """Each message alone, at the rate of the slower link."""

    def from_hub(self, load: Load, hub: int, receivers: Nodes, sent_s: float) -> Sendings:
        """One message to each node."""
        together_s, down = np.full(len(receivers), sent_s), self.links.down[receivers]
        left_s = sent_s + load.size_bytes / down
        arrived_s = left_s + self.links.ways_from(hub)[receivers]
        held = np.where(down < np.inf, BOTTLENECK["downlink"], BOTTLENECK["latency"]).astype(np.int8)
        return Sendings(*load[:2], hub, receivers, *load[2:], together_s, left_s, arrived_s, held)

    def apart(self, earlier: Sendings, places: Nodes, later: Sendings) -> bool:
        """Nobody meets anybody."""
        return True

    def exchange(self, plan: Plan) -> Exchange:
        """Everything from sending to the reports."""
        senders, receivers = plan.edges.T
        up, down = self.links.up[senders], self.links.down[receivers]
        sent_s = np.repeat(plan.sends_s, plan.degree)
        left_s = sent_s + plan.update.size_bytes / np.minimum(up, down)
        arrived_s = left_s + self.links.latencies(senders, receivers)
        held = np.where(up <= down, BOTTLENECK["uplink"], BOTTLENECK["downlink"]).astype(np.int8)
        update = plan.update
        updates = Sendings(*update[:2], senders, receivers, *update[2:], sent_s, left_s, arrived_s, held)
        reports = self.to_hub(plan.report, plan.members, plan.hub, plan.averages_s(arrived_s))
        return exchanged(plan, updates, reports)


class FifoForetelling(Foretelling):
    """One message after the other over each uplink, and in the order of first bytes over each downlink."""

    def reported(self, load: Load, senders: Nodes, hub: int, sent_s: Floats, left_s: Floats) -> Sendings:
        """One message of each node, where it is known when they have left."""
        found = super().reported(load, senders, hub, sent_s, left_s)
        return found._replace(bottleneck=_held(sent_s, left_s, found.arrived_s, found.arrived_s))

    def from_hub(self, load: Load, hub: int, receivers: Nodes, sent_s: float) -> Sendings:
        """One message to each node, alone on its downlink."""
        together_s = np.full(len(receivers), sent_s)
        first_s = together_s + self.links.ways_from(hub)[receivers]
        served_s = first_s + load.size_bytes / self.links.down[receivers]
        held = _held(together_s, together_s, first_s, served_s)
        return Sendings(*load[:2], hub, receivers, *load[2:], together_s, together_s, served_s, held, first_s)

    def apart(self, earlier: Sendings, places: Nodes, later: Sendings) -> bool:
        """Whether each comes to its receiver when the one in its place has come, or has come before that does."""
        if earlier.first_s is None or later.first_s is None:
            return False
        unlimited = self.links.down[later.receivers] == np.inf
        after, before = later.first_s >= earlier.arrived_s[places], later.arrived_s <= earlier.first_s[places]
        return bool((after | before | unlimited).all())

    def exchange(self, plan: Plan) -> Exchange:
        """Everything from sending to the reports."""
        senders, receivers = plan.edges.T
        up, size_bytes = self.links.up[plan.members], plan.update.size_bytes
        steps = np.repeat((size_bytes / up)[:, None], plan.degree, axis=1)
        # One after the other, as the engine adds them up.
        times_s = np.add.accumulate(np.column_stack([plan.sends_s, steps]), axis=1)
        latencies, left_s = self.links.latencies(senders, receivers), times_s[:, 1:].ravel()
        sent_s, first_s = np.repeat(plan.sends_s, plan.degree), times_s[:, :-1].ravel() + latencies
        served_s = self._served(plan, first_s)
        arrived_s = np.maximum(left_s + latencies, served_s)
        held = _held(sent_s, left_s, left_s + latencies, arrived_s)
        update = plan.update
        updates = Sendings(*update[:2], senders, receivers, *update[2:], sent_s, left_s, arrived_s, held, first_s)
        averages_s = plan.averages_s(arrived_s)
        reported_s = np.maximum(averages_s, times_s[:, -1]) + plan.report.size_bytes / up
        return exchanged(plan, updates, self.reported(plan.report, plan.members, plan.hub, averages_s, reported_s))

    def _served(self, plan: Plan, first_s: Floats) -> Floats:
        """When each update has come over its receiver's downlink."""
        firsts_s = plan.heard(first_s)
        in_turn = np.argsort(firsts_s, axis=1, kind="stable")
        firsts_s = np.take_along_axis(firsts_s, in_turn, axis=1)
        each_s = plan.update.size_bytes / self.links.down[plan.members]
        ends_s, free_s = np.empty_like(firsts_s), np.full(len(plan.members), -np.inf)
        for turn in range(plan.degree):
            free_s = np.maximum(firsts_s[:, turn], free_s) + each_s
            ends_s[:, turn] = free_s
        served_s, by_sender = np.empty_like(first_s), np.empty_like(ends_s)
        np.put_along_axis(by_sender, in_turn, ends_s, axis=1)
        served_s[plan.by_receiver] = by_sender.ravel()
        return served_s


def _held(sent_s: Floats, left_s: Floats, by_uplink_s: Floats, arrived_s: Floats) -> Codes:
    """What held messages back: their receiver's link, their sender's, or only the way."""
    at_sender = np.where(left_s > sent_s, BOTTLENECK["uplink"], BOTTLENECK["latency"])
    return np.where(arrived_s > by_uplink_s, BOTTLENECK["downlink"], at_sender).astype(np.int8)
