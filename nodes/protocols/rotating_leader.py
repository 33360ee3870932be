"""Rotating leader ("pseudo-central"): one member of the round, drawn by the proxy, averages and broadcasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from nodes.messaging.control_messages import Close, LeaderTimeout
from nodes.protocols.api import Assignment, Client, Disclosure, RoundContext, RoundPlan, RoundRules, Steps
from p2p.config.units import PositiveSeconds
from p2p.log.records import NO_NODE
from p2p.random_streams import stream

if TYPE_CHECKING:
    from nodes.learning.deferred_vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatingLeader(RoundRules):
    """Members send their update to the round's leader; it sends the new model back.

    Attributes:
        repeat_leaders: whether a leader may be drawn again while other members of its round have led less often; the
            thesis wants the proxy to keep leaders from repeating
        newcomers: last_leader serves the current model to members whose own is stale, stale leaves them as published
        handover_timeout: how long a stale member waits for that model before it trains with what it has
        collect: whose model is the final one: the last leader's, a random client's, or the mean of all
        leader_timeout: how long members wait for the model before they complain, and the proxy for the leader's reply
        model_deadline: how long after the updates' deadline members wait for the new model

    Guarantees:
        a round costs m-1 updates and m-1 models, handovers apart, and one round trip between leader and proxy;
        at most one model per round: a leader hands nothing over before the proxy has committed its average, and no
        other leader is elected afterwards; the leader's own update enters noisy and is charged when the model is
        handed over.
    """

    repeat_leaders: bool = True
    newcomers: Literal["last_leader", "stale"] = "last_leader"
    handover_timeout: PositiveSeconds = 20.0
    leader_timeout: PositiveSeconds = 30.0
    model_deadline: PositiveSeconds = 60.0
    collect: Literal["last_leader", "random", "mean"] = "last_leader"

    @property
    def longest_s(self) -> float:
        """The updates' deadline, and the wait for the model after it."""
        return self.deadline + self.model_deadline

    def plan_round(self, context: RoundContext) -> RoundPlan:
        """Draws a leader among those who may lead; the previous one hands its model to stale members first."""
        leader = int(stream(context.seed, "leader", context.round_number).choice(self._candidates(context)))
        others = context.members[context.members != leader]
        updates = np.column_stack([others, np.full_like(others, leader)])
        edges = {"update": updates, "model": updates[:, ::-1]}
        if self.newcomers == "last_leader" and context.holder != NO_NODE and len(context.stale):
            edges["handover"] = np.column_stack([np.full_like(context.stale, context.holder), context.stale])
        return RoundPlan(edges, leader)

    def _candidates(self, context: RoundContext) -> NDArray[np.int64]:
        """Returns the members that may lead: all, or those that have led least often."""
        if self.repeat_leaders:
            return context.members
        times = np.bincount(np.array(context.led, dtype=np.int64), minlength=context.clients)[context.members]
        least: NDArray[np.int64] = context.members[times == times.min()]
        return least

    def disclosure(self) -> Disclosure:
        """Declares updates, and aggregates from which everyone trains."""
        return Disclosure(spread="to_all")

    def take_part(self, client: Client, assignment: Assignment) -> Steps:
        """Catches up, then leads or follows; a holder outside the cohort only serves its model."""
        deadline_s = client.deadline_s(assignment, self.deadline)
        yield from client.catch_up(assignment, min(client.now_s + self.handover_timeout, deadline_s))
        if assignment.role == "holder":
            client.send(assignment, "model", client.learning.model(client.node), assignment.closes_s)
            return
        if client.model_round == assignment.round_number:
            return  # it has the round's model, and its report was lost
        # In a re-planned round a model may exist already; then no node waits for updates.
        trained = assignment.role == "leader" or bool(assignment.send_to.get("update"))
        trained = trained and (yield from client.train(assignment, deadline_s))
        trained = trained and (yield from client.protect(assignment, deadline_s))
        if client.is_superseded(assignment):
            return  # the update is for the leader of the newer plan only: each receiver more is a privacy cost
        client.world.phase_hooks.notify(client.node, assignment.round_number, "send")
        own = client.release(assignment) if trained else None
        if assignment.role == "leader":
            yield from self._lead(client, assignment, own, deadline_s)
        else:
            if own is not None:
                client.publish(assignment, own, deadline_s)
            yield from self._follow(client, assignment, own, deadline_s)

    def _lead(self, client: Client, assignment: Assignment, own: Vector | None, deadline_s: float) -> Steps:
        received = yield from client.collect(assignment, "update", deadline_s, self.quorum)
        if client.is_superseded(assignment):
            return  # deposed: another node leads the round
        repairs = yield from client.repair(assignment, received)
        own = own if self.include_own else None
        if client.has_too_few(received, own, self.min_updates):
            return
        # The broadcast begins with the request to commit: a leader that crashes here is replaced.
        client.world.phase_hooks.notify(client.node, assignment.round_number, "broadcast")
        if not (yield from client.commit(assignment, received, own, self.leader_timeout)):
            return
        client.average(assignment, received, own, self.min_updates, repairs)
        # Charged here, not in `publish`: the leader's update leaves its node only inside the model.
        if own is not None:
            client.charge(assignment)
        client.send(assignment, "model", client.learning.model(client.node), assignment.closes_s)

    def _follow(self, client: Client, assignment: Assignment, own: Vector | None, deadline_s: float) -> Steps:
        """Waits for the model; complains when it is overdue, and follows a new leader if the proxy elects one."""
        give_up_s = min(deadline_s + self.model_deadline, assignment.closes_s)
        while client.now_s < give_up_s and assignment.expect_from.get("model"):
            until_s = min(give_up_s, client.now_s + self.leader_timeout)
            received = yield from client.collect(assignment, "model", until_s)
            if received:
                client.adopt(received[0], assignment.round_number)
                return
            order = client.new_order(assignment)
            if isinstance(order, Close):
                return
            if order is None:
                complaint = LeaderTimeout(assignment.round_number, client.node, assignment.epoch)
                client.tell_proxy(assignment.round_number, complaint)
                continue
            # A new leader starts the updates' deadline afresh, and with it the wait for the model.
            assignment, deadline_s = order, client.deadline_s(order, self.deadline)
            give_up_s = min(deadline_s + self.model_deadline, order.closes_s)
            if order.role == "leader":
                yield from self._lead(client, order, own, deadline_s)
                return
            if own is not None:
                # The identical noisy vector, sealed for another reader: no new release, so nothing is charged.
                client.send(order, "update", own, deadline_s)
