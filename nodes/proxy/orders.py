"""The proxy's orders to the members of a round: assignments, and notices that their part has ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nodes.messaging.control_batches import assignments, read_registration, read_report, report_note, report_number
from nodes.messaging.control_messages import Close, Done
from nodes.messaging.endpoint import Endpoint
from nodes.protocols.api import RoundPlan
from nodes.proxy.assignments import HandedOut, PlanAssignments, PlanPeers, RoundTerms
from nodes.proxy.round_state import ProxyConfig, RunningRound
from nodes.round_record import RoundRecord
from nodes.world import World
from p2p.transport.messages import TOPICS, FetchTerms


class Orders:
    """Makes and sends orders. `endpoint` is that of the proxy's current node: another one after a failover."""

    def __init__(self, world: World, config: ProxyConfig, records: dict[int, RoundRecord]) -> None:
        self.endpoint = Endpoint(world.proxy, world)
        self._world, self._config, self._records = world, config, records
        world.network.contents.make_with(TOPICS["done"], read_report)
        world.network.contents.make_with(TOPICS["register"], partial(read_registration, world.sealed))

    def assign(self, running: RunningRound, nodes: Sequence[int], barrier_s: float | None = None) -> None:
        """Makes the assignments of the round's current plan."""
        router, answers = self._world.router, running.answers
        addresses = router.open_round(running.round_number, nodes)
        known = [node for node in nodes if router.knows(node)]
        record = self._records.get(running.round_number)
        if record is not None:
            record.addresses = addresses
            record.assigned.append(known)
        whole, number = self._config.hand_out == "graph", running.round_number
        weights, times = self._weight_total(running), (running.lasts_s, running.extend)
        schedule = self._config.schedule
        planned = schedule.planned_rounds() if schedule.reads and number <= self._config.rounds else 0.0
        keyed = self._world.sealed is not False
        terms = RoundTerms(number, running.closes_s, keyed, barrier_s, running.epoch, whole, weights, *times, planned)
        public_key = self._config.public_key
        peers = PlanPeers(known, addresses, lambda node: public_key(answers[node]))
        plan = PlanAssignments(running.round_plan, terms, peers, running.members)
        running.plans |= dict.fromkeys(known, plan)
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
        if not nodes:
            return
        world, fetch, joined = self._world, self._fetch_terms(running), running.answers
        plans = [running.plans[node] for node in nodes]
        each = list(zip(nodes, plans, strict=True))
        payloads = [plan.payload_bytes(node) for node, plan in each]
        what = HandedOut(nodes, plans), payloads, running.closes_s
        batch = assignments(self.endpoint.node, nodes, running.round_number, *what, world.sealed)
        # A first assignment finds an idle member; a later one must interrupt the wait of the plan that it replaces.
        batch.immediate = urgent or plans[0].epoch > 0
        if fetch is None:
            world.network.send(batch)
        else:
            batch.fetch_lives = [joined[node].life if node in plan.fetching else -1 for node, plan in each]
            world.network.hand_out(batch, fetch)

    def _fetch_terms(self, running: RunningRound) -> FetchTerms | None:
        """Returns how nodes fetch the first model in this round; None if none of them does."""
        world, number = self._world, running.round_number
        if "bootstrap" not in running.round_plan.edges:
            return None
        report = report_number(Done(number, world.proxy, 0, epoch=running.epoch))
        note, times = report_note(world.sealed, has_loss=False), (running.closes_s, running.lasts_s)
        config = self._config
        # Sealed models are opened one by one, by their receivers' keys.
        taken = None if world.sealed is True else config.take_first_models
        return FetchTerms(world.server, world.proxy, *times, note, report, config.end_late_fetch, taken)

    def close(self, running: RunningRound, nodes: Sequence[int]) -> None:
        """Tells nodes that their part of the round has ended."""
        self.endpoint.send_control(nodes, running.round_number, Close(running.round_number), running.closes_s)

    def log_graph(self, round_number: int, round_plan: RoundPlan) -> None:
        """Logs the edges along which updates are to be sent."""
        edges = round_plan.edges["update"]
        self._world.log.graphs.extend(len(edges), round=round_number, sender=edges[:, 0], receiver=edges[:, 1])
