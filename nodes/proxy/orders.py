"""The proxy's orders to the members of a round: assignments, and notices that their part has ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nodes.messaging.control_batches import read_registration, read_report
from nodes.messaging.control_messages import Close
from nodes.messaging.endpoint import Endpoint
from nodes.protocols.api import RoundPlan
from nodes.proxy.assignments import RoundTerms, make_assignments
from nodes.proxy.round_state import ProxyConfig, RunningRound
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.transport.messages import TOPICS


class Orders:
    """Makes and sends orders. `endpoint` is that of the proxy's current node: another one after a failover."""

    def __init__(self, world: World, config: ProxyConfig, records: dict[int, RoundRecord]) -> None:
        self.endpoint = Endpoint(world.proxy, world)
        self._world, self._config, self._records = world, config, records
        world.network.contents.make_with(TOPICS["done"], read_report)
        world.network.contents.make_with(TOPICS["register"], partial(read_registration, world.sealed))

    def assign(self, running: RunningRound, nodes: Sequence[int], barrier_s: float | None = None) -> None:
        """Makes the assignments of the round's current plan."""
        addresses = self._world.router.open_round(running.round_number, nodes)
        record = self._records.get(running.round_number)
        if record is not None:
            record.addresses |= addresses
        whole, number = self._config.hand_out == "graph", running.round_number
        weights, times = self._weight_total(running), (running.lasts_s, running.extend)
        schedule = self._config.schedule
        planned = schedule.planned_rounds() if schedule.reads and number <= self._config.rounds else 0.0
        terms = RoundTerms(number, running.closes_s, barrier_s, running.epoch, whole, weights, *times, planned)
        keys = {node: self._config.public_key(running.answers[node]) for node in addresses}
        running.assignments |= make_assignments(running.round_plan, terms, addresses, keys, running.members)
        if "update" in running.round_plan.edges:
            self._world.network.prefetch(running.round_plan.edges["update"])

    def _weight_total(self, running: RunningRound) -> float:
        """Returns the denominator of the updates' weights: that of the first plan, also after an election."""
        if self._config.tracker is None or "update" not in running.round_plan.edges:
            return 0.0
        # Shares of the first plan are scaled by it, and updates that were sent to a lost leader are sent again as is.
        if not running.weight_total:
            running.weight_total = self._config.tracker.weight_total(running.members, running.round_plan.leader)
        return running.weight_total

    def hand_out(self, running: RunningRound, nodes: Sequence[int], *, urgent: bool = False) -> None:
        """Sends assignments; those of a running round are urgent, since their receivers may wait inside it."""
        orders = [running.assignments[node] for node in nodes]
        self.endpoint.send_controls(nodes, running.round_number, orders, running.closes_s, urgent=urgent)

    def close(self, running: RunningRound, nodes: Sequence[int]) -> None:
        """Tells nodes that their part of the round has ended."""
        self.endpoint.send_control(nodes, running.round_number, Close(running.round_number), running.closes_s)

    def log_graph(self, round_number: int, round_plan: RoundPlan) -> None:
        """Logs the edges along which updates are to be sent."""
        edges = round_plan.edges["update"]
        self._world.log.graphs.extend(len(edges), round=round_number, sender=edges[:, 0], receiver=edges[:, 1])
